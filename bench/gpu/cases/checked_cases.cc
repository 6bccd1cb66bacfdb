// The checked build: an index that only the device sees and that fits nothing becomes one error that names
// operator, call and value; the other sequences of the batch keep their bits, and the stream goes on.

#include <functional>

#include "base/random.h"
#include "base/text.h"
#include "cases/device_case.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear_rope_kv/linear_rope_kv.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "plan/step_plan.h"
#include "runtime/cuda/faults.h"

namespace ridge::cases {

namespace {

std::vector<float> normal(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = random.normal();
  return values;
}

/// Three sequences of 40 keys in a cache of 12 pages of 16 (or of 5 in 30), each with entries of its own.
struct Batch {
  static constexpr int64_t kSequences = 3, kKvHeads = 2, kHeads = 4, kKeys = 40;
  int64_t page_size, head_dim, max_pages = 0, pages = 0;
  std::vector<int32_t> table;
  std::vector<int64_t> lengths = std::vector<int64_t>(kSequences, kKeys);

  Batch(int64_t page_size_in, int64_t head_dim_in) : page_size(page_size_in), head_dim(head_dim_in) {
    max_pages = (kKeys + page_size - 1) / page_size, pages = (kSequences + 1) * max_pages;
    for (int64_t i = 0; i < kSequences * max_pages; ++i) table.push_back(static_cast<int32_t>(pages - 1 - i));
  }
  void put(Bench& bench, DType dtype, PagedAttention* a, int64_t rows) const {
    const Shape cache{pages, kKvHeads, page_size, head_dim};
    a->k_pages = bench.upload_as(dtype, normal(cache.elements(), 1), cache);
    a->v_pages = bench.upload_as(dtype, normal(cache.elements(), 2), cache);
    a->page_table = bench.upload(table, {kSequences, max_pages});
    a->kv_length = bench.upload(lengths, {kSequences});
    const Shape row{rows, kHeads, head_dim};
    a->q = bench.upload(normal(row.elements(), 3), row), a->o = bench.output(kF32, row);
  }
};

using Attend = std::function<std::vector<float>(const Batch&)>;

/// The right batch, then each wrong one: its fault, sequences 0 and 2 as they were, and the right one again.
void expect_faults(Bench& bench, const Batch& right, const Attend& attend, const std::string& op) {
  struct Wrong {
    std::string says;
    std::function<void(Batch*)> change;
  };
  const int64_t room = right.max_pages * right.page_size;
  const auto says = [&](const std::string& what, int64_t value, int64_t least, int64_t most,
                        const char* range) {
    return text(op, ": ", what, " is ", value, ", needs ", least, " to ", most, ": ", range);
  };
  const auto page = [&](int32_t value) -> Wrong {
    return {says("page_table[1, 2]", value, 0, right.pages - 1, "the pages of the cache"),
            [=](Batch* b) { b->table[static_cast<size_t>(b->max_pages) + 2] = value; }};
  };
  const auto length = [&](int64_t value) -> Wrong {
    return {says("kv_length[1]", value, 0, room, "what page_table has room for"),
            [=](Batch* b) { b->lengths[1] = value; }};
  };
  const std::vector<float> good = attend(right);
  const size_t each = good.size() / static_cast<size_t>(Batch::kSequences);
  for (const Wrong& wrong : {page(static_cast<int32_t>(right.pages)), page(kPoisonIndex), page(-1),
                             length(room + 1), length(int64_t{1} << 40), length(-3)}) {
    Batch batch = right;
    wrong.change(&batch);
    bench.expect_fault(wrong.says);
    const std::vector<float> got = attend(batch);
    for (size_t i = 0; i < got.size(); ++i)
      bench.expect(got[i] == good[i] || (i >= each && i < 2 * each), text(wrong.says, ": element ", i));
    bench.expect(attend(right) == good, text("after \"", wrong.says, "\""));
  }
}

/// Both rings of attention_decode_split, boxes and lanes, and attention_tiles.
void decode_finds_pages_and_lengths(Bench& bench) {
  struct Way {
    int64_t page_size, head_dim;
    DType dtype;
  };
  for (const Way& w :
       {Way{16, 128, kBF16}, Way{16, 64, kF16}, Way{5, 128, kBF16}, Way{16, 80, kBF16}, Way{16, 64, kF32}}) {
    const Batch right(w.page_size, w.head_dim);
    expect_faults(
        bench, right,
        [&](const Batch& b) {
          AttentionDecodeArgs a;
          b.put(bench, w.dtype, &a, Batch::kSequences);
          bench.run([&](CudaStream& s) { return attention_decode(s, a); });
          return bench.floats(a.o);
        },
        "attention_decode");
  }
}

void prefill_finds_pages_lengths_and_rows(Bench& bench) {
  const Batch right(16, 64);
  std::vector<int64_t> starts = {0, 2, 4, 6};
  const auto attend = [&](const Batch& b) {
    AttentionPrefillArgs a;
    b.put(bench, kBF16, &a, 6);
    a.query_start = bench.upload(starts, {4});
    bench.run([&](CudaStream& s) { return attention_prefill(s, a); });
    return bench.floats(a.o);
  };
  expect_faults(bench, right, attend, "attention_prefill");
  starts[3] = 7;
  bench.expect_fault("attention_prefill: query_start[3] is 7, needs 4 to 6: rising, within the rows of q");
  (void)attend(right);
}

/// What kv_write, rope_kv_write and linear_rope_kv write of 3 tokens into 4 pages of 4.
struct Written {
  Tensor k_pages, v_pages;
  static constexpr int64_t kTokens = 3, kHeads = 1, kHeadDim = 64, kPages = 4, kPage = 4;
  explicit Written(Bench& bench) {
    const Shape cache{kPages, kHeads, kPage, kHeadDim};
    const std::vector<float> zeros(static_cast<size_t>(cache.elements()));
    k_pages = bench.upload(zeros, cache), v_pages = bench.upload(zeros, cache);
  }
};

/// `write` with each wrong slot (and position): the fault; the other two tokens are in their places, and
/// nothing else is.
void expect_slot_faults(
    Bench& bench, const std::string& op, bool turns,
    const std::function<void(const Written&, const Tensor& slots, const Tensor& positions)>& write) {
  struct Wrong {
    int64_t slot, position;
    std::string says;
  };
  std::vector<Wrong> all = {
      {16, 7, "slots[1] is 16, needs -1 to 15: the places of the cache, or -1 for none"},
      {int64_t{1} << 40, 7, ""},
      {-2, 7, "slots[1] is -2, needs -1 to 15: the places of the cache, or -1 for none"}};
  all[1].says =
      text("slots[1] is ", all[1].slot, ", needs -1 to 15: the places of the cache, or -1 for none");
  if (turns)
    all.push_back(
        {9, -5, text("positions[1] is -5, needs 0 to ", kMostPosition, ": what angles are exact for")});
  for (const Wrong& wrong : all) {
    const Written cache(bench);
    bench.expect_fault(text(op, ": ", wrong.says));
    write(cache, bench.upload(std::vector<int64_t>{3, wrong.slot, 6}, {3}),
          bench.upload(std::vector<int64_t>{6, wrong.position, 8}, {3}));
    const std::vector<float> k = bench.floats(cache.k_pages);
    for (int64_t slot = 0; slot < Written::kPages * Written::kPage; ++slot)
      bench.expect((k[static_cast<size_t>(slot * Written::kHeadDim)] != 0) ==
                       (slot == 3 || slot == 6 || slot == wrong.slot),
                   text(op, " ", wrong.says, ": slot ", slot));
  }
}

void writes_find_slots_and_positions(Bench& bench) {
  constexpr int64_t kTokens = Written::kTokens, kHeads = Written::kHeads, kHeadDim = Written::kHeadDim;
  const Shape rows{kTokens, kHeads, kHeadDim};
  const Tensor k = bench.upload(normal(rows.elements(), 1), rows);
  const Tensor frequencies = bench.upload(std::vector<float>{1, 0.1f}, {2});
  expect_slot_faults(bench, "kv_write", false, [&](const Written& w, const Tensor& slots, const Tensor&) {
    KvWriteArgs a;
    a.k = a.v = k, a.k_pages = w.k_pages, a.v_pages = w.v_pages, a.slots = slots;
    bench.run([&](CudaStream& s) { return kv_write(s, a); });
  });
  expect_slot_faults(bench, "rope_kv_write", true,
                     [&](const Written& w, const Tensor& slots, const Tensor& positions) {
                       RopeKvWriteArgs a;
                       a.q = bench.upload(normal(rows.elements(), 2), rows), a.k = a.v = k;
                       a.k_pages = w.k_pages, a.v_pages = w.v_pages, a.slots = slots, a.positions = positions;
                       a.frequencies = frequencies, a.settled = true;
                       bench.run([&](CudaStream& s) { return rope_kv_write(s, a); });
                     });
  constexpr int64_t kIn = 64;
  const Tensor x = bench.upload_as(kBF16, normal(kTokens * kIn, 4), {kTokens, kIn});
  const Tensor w =
      bench.upload_as(kBF16, normal(3 * kHeads * kHeadDim * kIn, 5), {3 * kHeads * kHeadDim, kIn});
  expect_slot_faults(
      bench, "linear_rope_kv", true, [&](const Written& to, const Tensor& slots, const Tensor& positions) {
        LinearRopeKvArgs a;
        a.q = bench.output(kF32, rows), a.x = x, a.w = w;
        a.k_pages = to.k_pages, a.v_pages = to.v_pages, a.slots = slots, a.positions = positions;
        a.frequencies = frequencies, a.interleaved = true;
        bench.run([&](CudaStream& s) { return linear_rope_kv(s, a); });
      });
}

/// In a plan's first run and in its recorded ones the fault is that of the call, by its label.
void a_plan_names_the_call(Bench& bench) {
  Batch batch(16, 128);
  AttentionDecodeArgs right, wrong;
  batch.put(bench, kBF16, &right, Batch::kSequences);
  batch.table[4] = 77;
  batch.put(bench, kBF16, &wrong, Batch::kSequences);
  StepPlan plan(bench.device());
  plan.call("layer 2 attention", right);
  plan.call("layer 3 attention", wrong);
  bench.must(plan.finish({}));
  for (int run = 0; run < 3; ++run) {
    bench.expect_fault(
        "layer 3 attention: attention_decode: page_table[1, 1] is 77, needs 0 to 11: the pages of the cache");
    bench.run([&](CudaStream& s) { return plan.run(s); });
  }
}

}  // namespace

std::vector<DeviceCase> checked_cases() {
  if (!kChecked) return {};
  return {{"checked_decode_finds_pages_and_lengths", decode_finds_pages_and_lengths},
          {"checked_prefill_finds_pages_lengths_and_rows", prefill_finds_pages_lengths_and_rows},
          {"checked_writes_find_slots_and_positions", writes_find_slots_and_positions},
          {"checked_plan_names_the_call", a_plan_names_the_call}};
}

}  // namespace ridge::cases
