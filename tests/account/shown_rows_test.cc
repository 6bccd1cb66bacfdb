// Which calls of attention are one row of the account, and which rows are shown as one.

#include <gtest/gtest.h>

#include "account/flat_machine.h"
#include "engine/generate.h"
#include "lab/profile.h"
#include "ops/attention_decode/attention_decode.h"

namespace ridge {
namespace {

/// A decode of sequences behind so many cached tokens each, by its shapes.
struct Decode {
  AttentionDecodeArgs args;
  explicit Decode(const std::vector<int64_t>& pasts) {
    const auto n = static_cast<int64_t>(pasts.size());
    std::vector<QueryChunk> chunks;
    args.pairs = args.keys = int64_t{0};
    for (const int64_t past : pasts) {
      chunks.push_back({past, 1});
      args.pairs.value += past + 1, args.keys.value += past + 1;
    }
    args.chunks = std::make_shared<const std::vector<QueryChunk>>(chunks);
    args.q = Tensor(nullptr, kF32, {n, 9, 64});
    args.k_pages = Tensor(nullptr, kF16, {100, 3, 16, 64});
    args.kv_length = Tensor(nullptr, kI64, {n});
  }
  std::string shape() const { return registered<AttentionDecodeArgs>().shape(&args); }
  std::string fixed() const { return registered<AttentionDecodeArgs>().fixed_shape(&args); }
};

TEST(AttentionShape, up_to_four_sequences_are_named_by_their_lengths) {
  EXPECT_EQ(Decode({12}).shape(), "1 q, 9/3 x 64, 1 after 12");
  EXPECT_EQ(Decode({12, 0, 7, 9}).shape(), "4 q, 9/3 x 64, 1 after 12, 1 after 0, 1 after 7, 1 after 9");
  EXPECT_EQ(Decode({12, 0}).fixed(), "2 q, 9/3 x 64");
  Decode windowed({12});
  windowed.args.window = 5;
  EXPECT_EQ(windowed.shape(), "1 q, 9/3 x 64, window 5, 1 after 12");
  EXPECT_EQ(windowed.fixed(), "1 q, 9/3 x 64, window 5");
}

TEST(AttentionShape, beyond_four_batches_of_other_lengths_are_other_rows_though_their_sums_are_equal) {
  // Vectors of keys that stick out differ between them: so does what is executed, which a row has once.
  const Decode even({30, 30, 30, 30, 30}), uneven({10, 20, 30, 40, 50}), again({10, 20, 30, 40, 50}),
      turned({50, 40, 30, 20, 10});
  EXPECT_EQ(even.args.keys.get(), uneven.args.keys.get());
  EXPECT_EQ(even.shape().substr(0, even.shape().find('#')), "5 q, 9/3 x 64, 5 kv 155 ");
  EXPECT_EQ(uneven.shape().substr(0, uneven.shape().find('#')), "5 q, 9/3 x 64, 5 kv 155 ");
  EXPECT_NE(even.shape(), uneven.shape());
  EXPECT_NE(turned.shape(), uneven.shape());
  EXPECT_EQ(again.shape(), uneven.shape());
  EXPECT_EQ(even.fixed(), "5 q, 9/3 x 64");
}

TEST(ShownRows, lengths_of_windowed_and_of_global_layers_are_two_sums) {
  TinySpec spec;
  spec.architecture = "gemma3";
  TinyModel tiny(spec);
  EngineOptions o;
  o.kv.context = 128, o.max_sequences = 1;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  engine->set_observer(&profiler);
  generate(*engine, {request(random_prompt(20, 1), 9)});
  const Profile p = profiler.finish(flat_machine(1e10, 1e11), 1);
  ASSERT_EQ(p.phases.size(), 2u);
  std::vector<std::string> shapes;
  for (const ShownRow& s : shown_rows(p.phases[1]))
    if (s.row.op == "attention_decode") {
      shapes.push_back(s.row.shape);
      EXPECT_EQ(s.sums.size(), 8u) << s.row.shape;
    }
  std::sort(shapes.begin(), shapes.end());
  EXPECT_EQ(shapes, (std::vector<std::string>{"1 q, 4/2 x 32, 1 after 20..27",
                                              "1 q, 4/2 x 32, window 8, 1 after 20..27"}));
}

}  // namespace
}  // namespace ridge
