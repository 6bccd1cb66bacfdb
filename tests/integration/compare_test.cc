// The comparison that a person uses to find a wrong kernel must itself name the right call; and the logits of
// a given text must be those that the engine samples from.

#include "lab/compare.h"

#include "engine/forced.h"
#include "engine/generate.h"
#include "integration/model_file.h"

namespace ridge {
namespace {

std::unique_ptr<Session> opened(const ModelFile& file, ActivationFormat activations = ActivationFormat::kF32,
                                Isa isa = Isa::none) {
  SessionOptions o;
  o.device.cpu.threads = 1, o.device.cpu.isa = isa;
  o.engine.kv.k_type = o.engine.kv.v_type = kF32;
  o.engine.formats.activations = activations;
  auto s = Session::open(file.path(), o);
  EXPECT_TRUE(s.ok()) << s.status().message();
  return s.ok() ? s.take() : nullptr;
}

const std::vector<int32_t> kPrompt = random_prompt(20, 1, 256);

TEST(Compare, a_model_differs_from_itself_in_nothing) {
  for (const char* architecture : {"llama", "gemma3"}) {
    TinySpec spec;
    spec.architecture = architecture;
    ModelFile file;
    file.write(spec);
    const auto a = opened(file), b = opened(file);
    const auto c = compare_sessions(*a, *b, kPrompt, 0);
    ASSERT_TRUE(c.ok()) << c.status().message();
    EXPECT_GT(c->outputs, 20);
    EXPECT_FALSE(c->first) << c->first->label;
    for (const Difference& d : c->worst) EXPECT_EQ(d.error, 0) << d.label << " " << d.op;
  }
}

TEST(Compare, a_changed_weight_is_named_by_layer_and_operator) {
  ModelFile right, wrong;
  right.write({});
  TinySpec spec;
  spec.edit = [](const std::string& name, std::vector<float>* values) {
    if (name == "blk.1.ffn_up.weight") (*values)[5] += 10;
  };
  wrong.write(spec);
  const auto a = opened(right), b = opened(wrong);
  const auto c = compare_sessions(*a, *b, kPrompt, 1e-4);
  ASSERT_TRUE(c.ok()) << c.status().message();
  ASSERT_TRUE(c->first);
  EXPECT_EQ(c->first->label, "layer 1 up");
  EXPECT_EQ(c->first->op, "linear");
  EXPECT_LE(c->worst.size(), 10u);
}

TEST(Compare, instruction_sets_agree_and_int8_activations_are_told_apart) {
  ModelFile file;
  file.write({});
  const auto scalar = opened(file, ActivationFormat::kF32, Isa::scalar), wide = opened(file);
  const auto same = compare_sessions(*scalar, *wide, kPrompt, 1e-4);
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_FALSE(same->first) << same->first->label << " " << same->first->error;
  const auto int8 = opened(file, ActivationFormat::kInt8);
  const auto other = compare_sessions(*wide, *int8, kPrompt, 1e-4);
  ASSERT_TRUE(other.ok()) << other.status().message();
  ASSERT_TRUE(other->first);
  EXPECT_EQ(other->first->op, "linear");
  EXPECT_NE(other->first->kernel_a, other->first->kernel_b);
}

TEST(Compare, a_value_that_is_no_number_is_beyond_any_bound) {
  ModelFile right, wrong;
  right.write({});
  TinySpec spec;
  spec.edit = [](const std::string& name, std::vector<float>* values) {
    if (name == "blk.0.ffn_norm.weight") (*values)[3] = std::nanf("");
  };
  wrong.write(spec);
  const auto a = opened(right), b = opened(wrong);
  const auto c = compare_sessions(*a, *b, kPrompt, 1e30);
  ASSERT_TRUE(c.ok()) << c.status().message();
  ASSERT_TRUE(c->first);
  EXPECT_EQ(c->first->label, "layer 0 mlp norm");
}

TEST(ForcedText, chunks_give_the_logits_that_the_engine_samples_from) {
  for (const char* architecture : {"llama", "gemma3"}) {
    TinySpec spec;
    spec.architecture = architecture;
    TinyModel tiny(spec);
    const auto ids = random_prompt(40, 3);
    EngineOptions o;
    o.kv.context = 64;
    const Answer sampled = generate(*engine_for(tiny, o), {request(ids, 1)}).at(0);
    auto forced = ForcedText::create(*tiny.device, *tiny.model, {o.formats, o.kv.k_type, 64, {}});
    ASSERT_TRUE(forced.ok()) << forced.status().message();
    ASSERT_TRUE(forced->feed({ids.begin(), ids.begin() + 25}).ok());
    std::set<std::string> seen;
    const auto logits =
        forced->feed({ids.begin() + 25, ids.end()}, [&](const PlannedCall& c) { seen.insert(c.call.label); });
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    EXPECT_EQ(seen.count("layer 1 down"), 1u);
    ASSERT_EQ(logits->dim(0), 15);
    const auto* last = logits->row<float>(14);
    EXPECT_EQ(std::memcmp(last, sampled.logits[0].data(), sampled.logits[0].size() * 4), 0);
  }
}

TEST(ForcedText, what_cannot_be_fed_is_refused_with_its_value) {
  TinyModel tiny;
  auto forced = ForcedText::create(*tiny.device, *tiny.model, {{}, kF16, 64, {}});
  ASSERT_TRUE(forced.ok());
  const auto refused = [&](const std::vector<int32_t>& ids, const char* says) {
    const auto logits = forced->feed(ids);
    ASSERT_FALSE(logits.ok()) << says;
    EXPECT_EQ(logits.status().code(), Code::kInvalidArgument);
    EXPECT_NE(logits.status().message().find(says), std::string::npos) << logits.status().message();
  };
  refused({}, "no tokens");
  refused(random_prompt(65, 1), "65 tokens after 0 exceed the context of 64");
  refused({300}, "token 300");
  EXPECT_FALSE(ForcedText::create(*tiny.device, *tiny.model, {{}, kF16, 0, {}}).ok());
}

}  // namespace
}  // namespace ridge
