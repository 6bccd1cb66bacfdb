// Counted work and bytes against values worked out by hand: the cases A1 to A18 of the account. T8 is the
// test shape of ShapesModel.

#include "account/cost.h"

#include "account/shapes_only.h"
#include "engine/kv_pool.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/cast/cast.h"
#include "ops/embedding/embedding.h"
#include "ops/feed_tokens/feed_tokens.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/rope_kv_write/rope_kv_write.h"

namespace ridge {
namespace {

template <class A>
Cost cost_of_call(const A& args) {
  AnyOperator& op = registered<A>();
  const Status s = op.check(&args);
  EXPECT_TRUE(s.ok()) << s.message();
  auto selected = op.select(Target{"cpu", Isa::scalar}, &args);
  EXPECT_TRUE(selected.ok()) << selected.status().message();
  return op.cost(*selected, &args);
}

TEST(Cost, A1_the_head_runs_on_the_rows_that_are_sampled) {
  ShapesOnlyDevice device;
  ShapesModel t8;
  t8.layers = 1;
  // A prompt of 1000 that ends, 500 tokens of one that does not, 6 decodes: 1 + 0 + 6 rows.
  const auto plan = t8.plan(device, {.decodes = 6, .prefills = 2, .prefill_tokens = 1500, .logit_rows = 7});
  EXPECT_EQ(cost_of(*plan, "linear", "logits head").total_flops(), 2ll * 7 * 4096 * 128256);
  EXPECT_NEAR(double(cost_of(*plan, "linear", "logits head").total_flops()) / 1e9, 7.355, 5e-4);
  EXPECT_EQ(cost_of(*plan, "linear", "gate").total_flops(), 2ll * 1506 * 4096 * 14336);
}

TEST(Cost, A1_a_step_of_unfinished_prompts_has_no_head) {
  ShapesOnlyDevice device;
  ShapesModel t8;
  t8.layers = 1;
  const auto plan = t8.plan(device, {.decodes = 0, .prefills = 1, .prefill_tokens = 500, .logit_rows = 0});
  EXPECT_EQ(cost_of(*plan, "linear", "logits head").total_flops(), 0);
}

TEST(Cost, A2_pairs_are_counted_by_request_and_by_chunk) {
  EXPECT_EQ(2 * causal_pairs(0, 100), 10100);
  EXPECT_EQ(causal_pairs(0, 200), 20100);  // what two prompts merged into one would read
  EXPECT_EQ(causal_pairs(0, 256), 32896);
  EXPECT_EQ(causal_pairs(256, 256), 98432);
  EXPECT_EQ(causal_pairs(512, 256), 163968);
  EXPECT_EQ(causal_pairs(768, 232), 205204);
  EXPECT_EQ(32896 + 98432 + 163968 + 205204, causal_pairs(0, 1000));
}

TEST(Cost, A3_a_window_is_neither_full_nor_half) {
  EXPECT_EQ(causal_pairs(0, 2048, 512), 917760);
  EXPECT_EQ(causal_pairs(0, 2048), 2098176);
  // In chunks of any size the sum is the same.
  for (const int64_t chunk : {1, 7, 100, 512, 600, 2048}) {
    int64_t sum = 0;
    for (int64_t past = 0; past < 2048; past += chunk)
      sum += causal_pairs(past, std::min(chunk, 2048 - past), 512);
    EXPECT_EQ(sum, 917760) << "chunks of " << chunk;
  }
  // Keys: the last 512 + 7 of them for 8 queries.
  EXPECT_EQ(causal_keys(2040, 8, 512), 519);
  EXPECT_EQ(causal_keys(2040, 8), 2048);
  EXPECT_EQ(causal_keys(100, 0, 512), 0);
}

TEST(Cost, A4_causal_attention_is_counted_as_half_of_the_square) {
  constexpr int64_t kTokens = 129024;
  ShapesOnlyDevice device;
  AttentionPrefillArgs a;
  a.q = device.tensor(kF32, {kTokens, 32, 128}), a.o = device.tensor(kF32, {kTokens, 32, 128});
  a.k_pages = device.tensor(kBF16, {8064, 32, 16, 128}),
  a.v_pages = device.tensor(kBF16, {8064, 32, 16, 128});
  a.page_table = device.tensor(kI32, {1, 8064}), a.kv_length = device.tensor(kI64, {1});
  a.query_start = device.tensor(kI64, {2});
  a.scale = 1, a.pairs = causal_pairs(0, kTokens), a.keys = causal_keys(0, kTokens);
  const double attention = 32 * double(cost_of_call(a).total_flops());
  EXPECT_NEAR(attention / 1e12, 4364, 1);
  a.chunks = std::make_shared<const std::vector<QueryChunk>>(1, QueryChunk{0, kTokens});
  EXPECT_NEAR(32 * double(cost_of_call(a).square_flops) / 1e12, 8728, 1);
  double matrices = 0;
  for (const auto& [out, in, count] : {std::tuple{4096, 4096, 4}, {11008, 4096, 2}, {4096, 11008, 1}}) {
    LinearArgs l;
    l.x = device.tensor(kF32, {kTokens, in}), l.w = device.tensor(kBF16, {out, in}),
    l.y = device.tensor(kF32, {kTokens, out});
    matrices += 32.0 * count * double(cost_of_call(l).total_flops());
  }
  EXPECT_NEAR(matrices / 1e12, 1671, 1);
}

AttentionDecodeArgs decode_of(ShapesOnlyDevice& device, int64_t sequences, int64_t heads, DType kv) {
  AttentionDecodeArgs a;
  a.q = device.tensor(kF32, {sequences, heads, 128}), a.o = device.tensor(kF32, {sequences, heads, 128});
  a.k_pages = device.tensor(kv, {4096, 8, 16, 128}), a.v_pages = device.tensor(kv, {4096, 8, 16, 128});
  a.page_table = device.tensor(kI32, {sequences, 64}), a.kv_length = device.tensor(kI64, {sequences});
  a.scale = 1;
  return a;
}

TEST(Cost, A5_shared_kv_heads_save_bytes_and_no_flops) {
  ShapesOnlyDevice device;
  AttentionDecodeArgs a = decode_of(device, 1, 64, kBF16);
  a.pairs = 1, a.keys = 1;
  EXPECT_EQ(cost_of_call(a).total_flops(), 32768);
  EXPECT_EQ(read_of(cost_of_call(a), kKv), 2 * 8 * 128 * 2);
}

TEST(Cost, A6_paged_decode_reads_lengths_and_not_room) {
  ShapesOnlyDevice device;
  AttentionDecodeArgs a = decode_of(device, 4, 32, kBF16);
  int64_t keys = 0;
  for (const int64_t length : {17, 1, 1024, 0}) keys += length > 0 ? causal_keys(length - 1, 1) : 0;
  EXPECT_EQ(keys, 1042);
  a.pairs = keys, a.keys = keys;
  EXPECT_EQ(read_of(cost_of_call(a), kKv), 4268032);
}

TEST(Cost, A7_four_drafts_read_the_cache_once_at_its_own_width) {
  ShapesOnlyDevice device;
  AttentionPrefillArgs a;
  a.q = device.tensor(kF32, {4, 32, 128}), a.o = device.tensor(kF32, {4, 32, 128});
  a.k_pages = device.tensor(kI8, {4096, 8, 16, 128}), a.v_pages = device.tensor(kI8, {4096, 8, 16, 128});
  a.k_scale = device.tensor(kF32, {4096, 8, 16}), a.v_scale = device.tensor(kF32, {4096, 8, 16});
  a.page_table = device.tensor(kI32, {1, 64}), a.kv_length = device.tensor(kI64, {1});
  a.query_start = device.tensor(kI64, {2});
  a.scale = 1, a.pairs = causal_pairs(1000, 4), a.keys = causal_keys(1000, 4);
  const Cost c = cost_of_call(a);
  EXPECT_EQ(c.total_flops(), 4ll * 4010 * 32 * 128);
  EXPECT_EQ(read_of(c, kKv), 2056192);
  EXPECT_EQ(read_of(c, kScales), 1004 * 2 * 8 * 4);  // in a class of their own
}

TEST(Cost, A8_cache_bytes_grow_with_tokens_exactly) {
  const std::vector<KvShape> shapes(80, KvShape{8, 128, 0});
  KvOptions o;
  o.k_type = o.v_type = kBF16;
  EXPECT_EQ(KvPool::token_bytes(shapes, o), 327680);
  EXPECT_EQ(KvPool::token_bytes(shapes, o) * 131072, 40ll << 30);
  ShapesOnlyDevice device;
  o.page_size = 1, o.context = 1;
  for (const int64_t n : {1, 17, 1000000}) {
    o.pages = n;
    const auto pool = KvPool::create(device, shapes, o);
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    EXPECT_EQ(pool->bytes(), n * 327680);
  }
}

TEST(Cost, A9_a_decode_step_reads_weights_once_and_the_cache_of_each_sequence) {
  ShapesOnlyDevice device;
  for (const int64_t b : {1, 8, 64}) {
    const auto plan =
        ShapesModel().plan(device, {.decodes = b, .prefills = 0, .prefill_tokens = 0, .logit_rows = b});
    plan->set_counter("decode_pairs", b * causal_pairs(2047, 1));
    plan->set_counter("decode_keys", b * causal_keys(2047, 1));
    plan->set_counter("tokens_written", b);
    EXPECT_EQ(read_of(cost_of(*plan, "linear"), kWeights), 15009316864) << b;
    EXPECT_EQ(read_of(cost_of(*plan, "attention_decode"), kKv), b * 268435456) << b;
    EXPECT_EQ(cost_of(*plan, "linear").total_flops(), 2 * b * 7504658432) << b;
    // The input embedding is looked up, not read.
    EXPECT_EQ(read_of(cost_of(*plan, "embedding"), kWeights), b * 4096 * 2) << b;
    // One new token each is written, of all layers.
    EXPECT_EQ(written_of(cost_of(*plan, "kv_write"), kKv), b * 131072) << b;
    EXPECT_EQ(read_of(cost_of(*plan, "kv_write"), kKv), 0) << b;
  }
}

/// kv_write of 5 tokens, 3 of which have a slot: 2 kv heads of 8.
KvWriteArgs three_of_five(ShapesOnlyDevice& device, DType kv) {
  KvWriteArgs a;
  a.k = device.tensor(kF32, {5, 2, 8}), a.v = device.tensor(kF32, {5, 2, 8});
  a.k_pages = device.tensor(kv, {64, 2, 16, 8}), a.v_pages = device.tensor(kv, {64, 2, 16, 8});
  if (kv == kI8) a.k_scale = device.tensor(kF32, {64, 2, 16}), a.v_scale = device.tensor(kF32, {64, 2, 16});
  a.slots = device.tensor(kI64, {5});
  a.written = 3;
  return a;
}

TEST(Cost, A6_a_write_into_the_cache_reads_none_of_it) {
  ShapesOnlyDevice device;
  const Cost c = cost_of_call(three_of_five(device, kF16));
  EXPECT_EQ(read_of(c, kActivations), 2 * 3 * 2 * 8 * 4);  // k and v of the tokens that have a slot
  EXPECT_EQ(read_of(c, kIndices), 5 * 8);
  EXPECT_EQ(c.total_read(), 2 * 3 * 2 * 8 * 4 + 5 * 8);
  EXPECT_EQ(written_of(c, kKv), 2 * 3 * 2 * 8 * 2);
  EXPECT_EQ(c.total_written(), 2 * 3 * 2 * 8 * 2);
  const Cost codes = cost_of_call(three_of_five(device, kI8));
  EXPECT_EQ(codes.total_read(), 2 * 3 * 2 * 8 * 4 + 5 * 8);
  EXPECT_EQ(written_of(codes, kKv), 2 * 3 * 2 * 8);
  EXPECT_EQ(written_of(codes, kScales), 2 * 3 * 2 * 4);
}

TEST(Cost, A6_a_fused_write_into_the_cache_reads_none_of_it) {
  ShapesOnlyDevice device;
  const KvWriteArgs w = three_of_five(device, kBF16);
  RopeKvWriteArgs a;
  a.q = device.tensor(kF32, {5, 4, 8}), a.k = w.k, a.v = w.v, a.slots = w.slots;
  a.k_pages = w.k_pages, a.v_pages = w.v_pages, a.written = w.written;
  a.positions = device.tensor(kI64, {5}), a.frequencies = device.tensor(kF32, {3});
  const Cost c = cost_of_call(a);
  // q is turned in place, 6 of 8 elements a head.
  EXPECT_EQ(read_of(c, kActivations), 5 * 4 * 6 * 4 + 2 * 3 * 2 * 8 * 4);
  EXPECT_EQ(written_of(c, kActivations), 5 * 4 * 6 * 4);
  EXPECT_EQ(read_of(c, kKv), 0);
  EXPECT_EQ(written_of(c, kKv), 2 * 3 * 2 * 8 * 2);
}

TEST(Cost, A6_what_writes_into_a_part_counts_the_part) {
  ShapesOnlyDevice device;
  FeedTokensArgs f;
  f.ids = device.tensor(kI32, {512}), f.source = device.tensor(kI32, {512});
  f.sampled = device.tensor(kI32, {64}), f.fed = 3;
  const Cost fed = cost_of_call(f);
  EXPECT_EQ(fed.total_read(), 512 * 4 + 3 * 4);
  EXPECT_EQ(fed.total_written(), 3 * 4);
  CastArgs c;
  c.y = device.tensor(kBF16, {10, 64}).slice(2, 3), c.x = device.tensor(kF32, {10, 64}).slice(4, 3);
  EXPECT_EQ(cost_of_call(c).total_read(), 3 * 64 * 4);
  EXPECT_EQ(cost_of_call(c).total_written(), 3 * 64 * 2);
}

TEST(Cost, A13_the_cache_is_pages_times_what_a_token_takes) {
  ShapesOnlyDevice device;
  for (const DType type : {kF32, kF16, kBF16, kI8}) {
    KvOptions o;
    o.k_type = o.v_type = type;
    o.page_size = 16, o.pages = 100, o.context = 1600;
    const std::vector<KvShape> shapes = {{3, 64, 0}, {1, 256, 512}};
    const auto pool = KvPool::create(device, shapes, o);
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    EXPECT_EQ(pool->bytes(), 100 * 16 * KvPool::token_bytes(shapes, o)) << dtype_name(type);
  }
}

TEST(Cost, A14_bytes_follow_the_dtype) {
  EXPECT_EQ(*tensor_bytes(kF16, {1 << 20}), 2 << 20);
  EXPECT_EQ(*tensor_bytes(kI8, {2 << 20}), 2 << 20);
  ShapesOnlyDevice device;
  LinearArgs l;
  l.x = device.tensor(kF32, {1, 1024}), l.w = device.tensor(kF16, {1024, 1024}),
  l.y = device.tensor(kF32, {1, 1024});
  EXPECT_EQ(read_of(cost_of_call(l), kWeights), 2 << 20);
}

TEST(Cost, A17_scales_of_quantized_weights_are_a_class_of_their_own) {
  ShapesOnlyDevice device;
  const struct {
    DType dtype;
    int64_t codes, scales;
  } cases[] = {{kQ4_0, 33554432, 2097152 * 2},  // f16 for each 32
               {kQ4_1, 33554432, 2097152 * 4},  // and an f16 minimum
               {kQ8_0, 67108864, 2097152 * 2}, {kQ5_0, 33554432 + 2097152 * 4, 2097152 * 2},
               {kQ4_K, 33554432, 262144 * 16}, {kQ6_K, 262144 * 192, 262144 * 18}};
  for (const auto& c : cases) {
    LinearArgs l;
    l.x = device.tensor(kF32, {1, 8192}), l.w = device.tensor(c.dtype, {8192, 8192}),
    l.y = device.tensor(kF32, {1, 8192});
    const Cost cost = cost_of_call(l);
    EXPECT_EQ(read_of(cost, kWeights), c.codes) << dtype_name(c.dtype);
    EXPECT_EQ(read_of(cost, kScales), c.scales) << dtype_name(c.dtype);
  }
}

TEST(Cost, A25_padding_that_linear_multiplies_is_executed_and_not_useful) {
  ShapesOnlyDevice device;
  LinearArgs l;
  l.x = device.tensor(kF32, {7, 64}), l.w = device.tensor(kQ8_0, {40, 64}),
  l.y = device.tensor(kF32, {7, 40});
  l.w.layout = registered<LinearArgs>().packed_layout(Target{"cpu", Isa::scalar}, kQ8_0, {40, 64});
  ASSERT_NE(l.w.layout, nullptr);
  const Cost cost = cost_of_call(l);
  EXPECT_EQ(cost.flops[size_t(Engine::kF32)], 2 * 7 * 40 * 64);
  // Without vectors tokens go in groups of 4, rows in tiles of 16.
  EXPECT_EQ(cost.executed_flops[size_t(Engine::kF32)], 2 * 8 * 48 * 64);
}

/// Three fresh queries; two behind 30 keys; one behind 70.
std::shared_ptr<const std::vector<QueryChunk>> ragged_chunks() {
  return std::make_shared<const std::vector<QueryChunk>>(std::vector<QueryChunk>{{0, 3}, {30, 2}, {70, 1}});
}

TEST(Cost, A25_scores_that_attention_computes_and_masks_are_executed_and_not_useful) {
  ShapesOnlyDevice device;
  AttentionPrefillArgs a;
  a.q = device.tensor(kF32, {6, 2, 8}), a.o = device.tensor(kF32, {6, 2, 8});
  a.k_pages = device.tensor(kF16, {64, 1, 16, 8}), a.v_pages = device.tensor(kF16, {64, 1, 16, 8});
  a.page_table = device.tensor(kI32, {3, 8}), a.kv_length = device.tensor(kI64, {3});
  a.query_start = device.tensor(kI64, {4});
  a.scale = 1, a.chunks = ragged_chunks();
  // All before: 1 + 2 + 3, 31 + 32 and 71 keys, in vectors of 16: 3 x 16, 2 x 32 and 80.
  a.pairs = 6 + 63 + 71;
  Cost c = cost_of_call(a);
  EXPECT_EQ(c.flops[size_t(Engine::kF32)], 4 * 140 * 2 * 8);
  // Scores over 8 columns; values in a vector of 16 columns, of the keys that are seen.
  EXPECT_EQ(c.executed_flops[size_t(Engine::kF32)], 2 * (48 + 64 + 80) * 2 * 8 + 2 * 140 * 2 * 16);
  // The last 20: keys [11, 31), [12, 32) and [51, 71), which take 2 vectors each.
  a.window = 20, a.pairs = 6 + 40 + 20;
  c = cost_of_call(a);
  EXPECT_EQ(c.flops[size_t(Engine::kF32)], 4 * 66 * 2 * 8);
  EXPECT_EQ(c.square_flops, 4 * (3 * 3 + (32 * 32 - 30 * 30) + (71 * 71 - 70 * 70)) * 2 * 8)
      << "case A4: whatever the window";
  EXPECT_EQ(c.executed_flops[size_t(Engine::kF32)], 2 * (48 + 64 + 32) * 2 * 8 + 2 * 66 * 2 * 16);
  a.chunks = nullptr;  // nobody knows them: nothing is said to be padding
  c = cost_of_call(a);
  EXPECT_EQ(c.executed_flops, c.flops);
  EXPECT_EQ(c.square_flops, 0);
}

TEST(Cost, A25_blocks_of_rows_compute_every_tile_that_one_of_them_sees) {
  ShapesOnlyDevice device;
  PagedAttention a;
  a.q = device.tensor(kF32, {6, 6, 8});  // 3 heads a kv head
  a.k_pages = device.tensor(kF16, {64, 2, 16, 8});
  a.chunks = ragged_chunks();
  EXPECT_EQ(visible_scores(a), 6 * (6 + 63 + 71));
  // Blocks of 4 rows and tiles of 16 keys: 9 rows in 3 blocks that see keys to 2, 3 and 3; 6 rows in 2 that
  // see to 32 and 32; 3 rows that see to 71.
  EXPECT_EQ(tiled_scores(a, 4, 16), 2 * (3 * 1 + 2 * 2 + 5) * 4 * 16);
  // One block a chunk; the last has keys beyond 64.
  EXPECT_EQ(tiled_scores(a, 64, 64), 2 * (1 + 1 + 2) * 64 * 64);
  // Windows: the first row of a block reaches back furthest. [11, 32) and [12, 32); [51, 71).
  a.window = 20;
  EXPECT_EQ(visible_scores(a), 6 * (6 + 40 + 20));
  EXPECT_EQ(tiled_scores(a, 4, 16), 2 * (3 * 1 + 2 * 2 + 2) * 4 * 16);
  a.window = 3;  // [28, 32) of both rows, [29, 32), [68, 71)
  EXPECT_EQ(tiled_scores(a, 4, 16), 2 * (3 * 1 + 2 * 1 + 1) * 4 * 16);
}

TEST(Cost, A17_packed_weights_count_what_the_packed_form_holds) {
  ShapesOnlyDevice device;
  for (const DType dtype : {kQ4_0, kQ4_1, kQ8_0, kQ5_0, kQ4_K, kQ6_K}) {
    const PackedLayout* layout =
        registered<LinearArgs>().packed_layout(Target{"cpu", native_isa()}, dtype, {8192, 8192});
    if (layout == nullptr) continue;
    LinearArgs l;
    l.x = device.tensor(kF32, {1, 8192}), l.w = device.tensor(dtype, {8192, 8192}),
    l.y = device.tensor(kF32, {1, 8192});
    l.w.layout = layout;
    const Cost cost = cost_of_call(l);
    EXPECT_EQ(read_of(cost, kWeights) + read_of(cost, kScales), layout->bytes(8192, 8192)) << layout->name;
    EXPECT_EQ(read_of(cost, kScales), layout->scale_bytes(8192, 8192)) << layout->name;
    EXPECT_GT(read_of(cost, kScales), 0) << layout->name;
  }
}

TEST(Cost, A17_rows_of_a_packed_table_count_none_of_its_padding) {
  ShapesOnlyDevice device;
  // 300 rows are packed as 304.
  for (const auto& [dtype, row] :
       {std::pair{kF32, 256 * 4}, {kBF16, 256 * 2}, {kQ8_0, 8 * 34}, {kQ4_1, 8 * 20}}) {
    EmbeddingArgs e;
    e.ids = device.tensor(kI32, {64}), e.w = device.tensor(dtype, {300, 256}),
    e.y = device.tensor(kF32, {64, 256});
    e.w.layout = registered<LinearArgs>().packed_layout(Target{"cpu", native_isa()}, dtype, {300, 256});
    const Cost cost = cost_of_call(e);
    EXPECT_EQ(read_of(cost, kWeights) + read_of(cost, kScales), 64 * row) << dtype_name(dtype);
  }
}

TEST(Cost, A25_a_call_with_nothing_to_write_costs_its_launch) {
  ShapesOnlyDevice device;
  LinearArgs l;
  l.x = device.tensor(kF32, {0, 64}), l.w = device.tensor(kF32, {32, 64}), l.y = device.tensor(kF32, {0, 32});
  const Cost cost = cost_of_call(l);
  EXPECT_EQ(cost.total_bytes(), 0);
  EXPECT_EQ(cost.total_flops(), 0);
  EXPECT_EQ(cost.launches, 1);
}

TEST(Cost, sums_keep_every_class_and_engine) {
  Cost a, b;
  for (size_t i = 0; i < kEngines; ++i)
    a.flops[i] = int64_t(i) + 1, b.flops[i] = 10, b.executed_flops[i] = 20;
  for (size_t i = 0; i < kDataClasses; ++i) a.read_bytes[i] = int64_t(i), b.written_bytes[i] = 100;
  b.launches = 3;
  a += b;
  EXPECT_EQ(a.total_flops(), 1 + 2 + 3 + 4 + 5 + 50);
  EXPECT_EQ(a.total_executed(), 100);
  EXPECT_EQ(a.total_read(), 0 + 1 + 2 + 3 + 4);
  EXPECT_EQ(a.total_written(), 500);
  EXPECT_EQ(a.total_bytes(), 510);
  EXPECT_EQ(a.launches, 3);
}

}  // namespace
}  // namespace ridge
