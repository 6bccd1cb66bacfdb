// Attention's operations by the convention of others, in all that shows the account.

#include <nlohmann/json.hpp>

#include "account/flat_machine.h"
#include "engine/generate.h"
#include "lab/profile.h"
#include "lab/report.h"

namespace ridge {
namespace {

TEST(Square, A4_the_full_square_stands_beside_what_is_counted_wherever_the_account_is_read) {
  // Prompts of 12 and 5 in one step: 78 + 15 causal pairs, 144 + 25 of the squares; 2 layers, 4 heads of 32.
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 64, o.max_sequences = 2, o.prefill_tokens = 512;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  engine->set_observer(&profiler);
  generate(*engine, {request(random_prompt(12, 1), 1), request(random_prompt(5, 2), 1)});
  const Profile p = profiler.finish(flat_machine(1e10, 1e11), 1);
  const auto json = nlohmann::json::parse(profile_json(p));
  ASSERT_EQ(json["phases"].size(), 1u);
  int rows = 0;
  for (const auto& row : json["phases"][0]["operators"]) {
    EXPECT_EQ(row.contains("square_flops"), row["name"] == "attention_prefill") << row;
    if (row["name"] != "attention_prefill") continue;
    ++rows;
    EXPECT_EQ(row["flops"], 2 * 4 * 4 * 32 * (78 + 15));
    EXPECT_EQ(row["square_flops"], 2 * 4 * 4 * 32 * (144 + 25));
  }
  EXPECT_EQ(rows, 1);
  // Of one call: 4 * 4 * 32 * 169.
  const std::string lines = profile_text(p, false), page = report_html(p, nullptr);
  EXPECT_NE(lines.find("full square MFLOP\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("             0.087\n"), std::string::npos) << lines;
  EXPECT_NE(page.find("full square FLOP</th>"), std::string::npos);
  EXPECT_NE(page.find("<td>47616</td>"), std::string::npos) << "counted";
  EXPECT_NE(page.find("<td>86528</td></tr>"), std::string::npos) << "full square";
}

/// Operations by the full square in `phase`, of one request of `prompt` tokens whose chunks are of up to 5.
int64_t squares(int64_t prompt, int64_t output, Phase phase) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 64, o.max_sequences = 1, o.prefill_tokens = 5;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  engine->set_observer(&profiler);
  generate(*engine, {request(random_prompt(prompt, 1), output)});
  int64_t sum = 0;
  for (const ProfilePhase& p : profiler.finish(flat_machine(1e10, 1e11), 1).phases)
    for (const ProfileRow& r : p.rows) sum += p.phase == phase ? r.cost.square_flops : 0;
  return sum;
}

TEST(Square, A4_chunks_of_one_prompt_add_up_to_its_square) {
  for (const int64_t prompt : {5, 12, 11})  // one chunk; 5, 5 and 2; a last one of a single token
    EXPECT_EQ(squares(prompt, 1, Phase::kPrefill), 2 * 4 * 4 * 32 * prompt * prompt) << prompt;
}

TEST(Square, A4_a_decode_meets_its_past_and_itself) {
  EXPECT_EQ(squares(12, 1, Phase::kDecode), 0);
  EXPECT_EQ(squares(12, 3, Phase::kDecode), 2 * 4 * 4 * 32 * (13 + 14));
}

}  // namespace
}  // namespace ridge
