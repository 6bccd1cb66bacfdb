// Exact attention of chunks of a prompt over pages of 16: attention_flash and attention_tiles, checked
// against each other and timed.

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "harness.h"
#include "ops/attention_prefill/attention_prefill_flash.cuh"

namespace ridge::bench {

namespace {

using cuda::AttentionTilesCall;
using cuda::FlashShape;

/// `sequences` chunks of `tokens` after `past` keys each, pages in an order of their own.
struct Prompt {
  int64_t sequences, tokens, past, heads, kv_heads, head_dim, page = 16;
  DType dtype = kBF16;
  int64_t rows() const { return sequences * tokens; }
  int64_t pages_each() const { return ceil_div(past + tokens, page); }
  int64_t pages() const { return sequences * pages_each(); }
  int64_t elements() const { return pages() * kv_heads * page * head_dim; }
  int64_t row() const { return heads * head_dim; }
  double pairs() const {
    const auto t = static_cast<double>(tokens);
    return static_cast<double>(sequences) * (static_cast<double>(past) * t + t * (t + 1) / 2);
  }
  std::string text_of() const {
    return text(sequences, " × ", tokens, " tokens after ", past, ", ", heads, "/", kv_heads, " heads of ",
                head_dim, ", ", dtype_name(dtype), " pages");
  }
};

struct PromptData {
  Prompt p;
  DeviceBlock k, v, q, o, other, table, starts, lengths;
  explicit PromptData(const Prompt& prompt)
      : p(prompt),
        k(p.elements() * dtype_block_bytes(p.dtype)),
        v(p.elements() * dtype_block_bytes(p.dtype)),
        q(p.rows() * p.row() * 4),
        o(p.rows() * p.row() * 4),
        other(p.rows() * p.row() * 4),
        table(p.pages() * 4),
        starts((p.sequences + 1) * 8),
        lengths(p.sequences * 8) {
    fill_field(q.as<float>(), p.rows() * p.row(), 1);
    if (p.dtype == kF32)
      fill_field(k.as<float>(), p.elements(), 2), fill_field(v.as<float>(), p.elements(), 3);
    else if (p.dtype == kBF16)
      fill_field(k.as<bf16>(), p.elements(), 2), fill_field(v.as<bf16>(), p.elements(), 3);
    else
      fill_field(k.as<f16>(), p.elements(), 2), fill_field(v.as<f16>(), p.elements(), 3);
    // Another step than any power of two, so that neighbours are apart.
    std::vector<int32_t> pages(static_cast<size_t>(p.pages()));
    int64_t step = 7;
    while (p.pages() % step == 0) step += 2;
    for (int64_t i = 0; i < p.pages(); ++i)
      pages[static_cast<size_t>(i)] = static_cast<int32_t>(i * step % p.pages());
    std::vector<int64_t> start(static_cast<size_t>(p.sequences + 1)),
        length(static_cast<size_t>(p.sequences), p.past + p.tokens);
    for (size_t s = 0; s < start.size(); ++s) start[s] = static_cast<int64_t>(s) * p.tokens;
    const auto copy = [](const DeviceBlock& to, const auto& from) {
      must(cudaMemcpy(to.data, from.data(), from.size() * sizeof from[0], cudaMemcpyHostToDevice), "copy");
    };
    copy(table, pages), copy(starts, start), copy(lengths, length);
  }
  AttentionTilesCall call(void* out) const {
    AttentionTilesCall c;
    c.o = static_cast<float*>(out), c.q = q.as<const float>(), c.page_table = table.as<const int32_t>();
    c.query_start = starts.as<const int64_t>(), c.lengths = lengths.as<const int64_t>(), c.start_stride = 1;
    for (cuda::PagedSide* side : {&c.k, &c.v}) {
      side->pages = side == &c.k ? k.data : v.data, side->dtype = p.dtype, side->vectors = true;
      side->page_stride = p.kv_heads * p.page * p.head_dim, side->head_stride = p.page * p.head_dim,
      side->slot_stride = p.head_dim;
    }
    c.rows = p.rows(), c.heads = p.heads, c.kv_heads = p.kv_heads, c.ratio = p.heads / p.kv_heads;
    c.head_dim = p.head_dim, c.sequences = p.sequences;
    c.pages = p.pages(), c.page_size = p.page, c.max_pages = c.table_stride = p.pages_each();
    c.length_stride = 1;
    c.q_stride = c.o_stride = p.row(), c.q_head_stride = c.o_head_stride = p.head_dim;
    c.scale = 1 / std::sqrt(static_cast<float>(p.head_dim));
    return c;
  }
};

template <int kHeadDim>
void run_tiles(cudaStream_t stream, const AttentionTilesCall& c) {
  using Traits = cuda::TileTraits<kHeadDim, 64, 64, 256>;
  const dim3 grid(static_cast<unsigned>(ceil_div(c.rows * c.ratio, int64_t{64}) + c.sequences),
                  static_cast<unsigned>(c.kv_heads), 1);
  must(cuda::launch_attention_tiles<Traits>(stream, c, grid));
}

/// The largest difference between two results, beside the largest value.
double difference(const PromptData& d) {
  const size_t count = static_cast<size_t>(d.p.rows() * d.p.row());
  std::vector<float> a(count), b(count);
  must(cudaMemcpy(a.data(), d.o.data, count * 4, cudaMemcpyDeviceToHost), "copy");
  must(cudaMemcpy(b.data(), d.other.data, count * 4, cudaMemcpyDeviceToHost), "copy");
  double worst = 0;
  for (size_t i = 0; i < count; ++i) {
    const double off = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    worst = std::isnan(off) ? 1e9 : std::max(worst, off);
  }
  return worst;
}

template <int kHeadDim, class T>
void check_one(Session& session, const Prompt& p) {
  const PromptData d(p);
  fill_bytes(d.o.data, d.o.bytes, 0xff), fill_bytes(d.other.data, d.other.bytes, 0xff);
  run_tiles<kHeadDim>(session.stream(), d.call(d.o.data));
  for (const int groups : {1, 2}) {
    const auto run = [&]<int kGroups>() {
      must(cuda::launch_attention_flash<FlashShape<kHeadDim, kGroups>, T>(session.stream(),
                                                                          d.call(d.other.data)));
    };
    groups == 1 ? run.template operator()<1>() : run.template operator()<2>();
    must(cudaStreamSynchronize(session.stream()), "attention_flash");
    constexpr double kBound = 1e-4;  // of values of about 1: terms leave 2^-17 of a product
    const double worst = difference(d);
    session.check(worst <= kBound, text("attention_flash, ", groups, " x 64 rows, ", p.text_of()), worst,
                  kBound);
  }
}

template <int kHeadDim>
void time_one(Session& session, const Prompt& p, bool tiles) {
  const PromptData d(p);
  const AttentionTilesCall c = d.call(d.o.data);
  std::vector<Contender> contenders;
  if (p.dtype == kBF16) {
    contenders.push_back({"attention_flash, 2 x 64 rows", [&](cudaStream_t stream, int) {
                            must(cuda::launch_attention_flash<FlashShape<kHeadDim, 2>, bf16>(stream, c));
                          }});
    contenders.push_back({"attention_flash, 64 rows", [&](cudaStream_t stream, int) {
                            must(cuda::launch_attention_flash<FlashShape<kHeadDim, 1>, bf16>(stream, c));
                          }});
  }
  if (tiles)
    contenders.push_back(
        {"attention_tiles", [&](cudaStream_t stream, int) { run_tiles<kHeadDim>(stream, c); }});
  Condition condition;
  condition.row = text("prefill-", dtype_name(p.dtype), "-", p.sequences, "x", p.tokens, "-after-", p.past,
                       "-", p.heads, "x", p.head_dim);
  condition.text = p.text_of();
  condition.flops = 4 * p.pairs() * static_cast<double>(p.row());
  session.measure(condition, contenders);
}

}  // namespace

void check_prefill(Session& session) {
  check_one<64, bf16>(session, {1, 300, 0, 9, 3, 64});
  check_one<64, f16>(session, {3, 77, 50, 3, 1, 64, 16, kF16});
  check_one<128, bf16>(session, {2, 257, 130, 8, 2, 128});
  check_one<128, f16>(session, {1, 40, 1000, 7, 1, 128, 64, kF16});
  check_one<128, bf16>(session, {2, 200, 0, 6, 3, 80, 8});
  check_one<256, bf16>(session, {2, 129, 63, 4, 1, 256});
}

void bench_prefill(Session& session) {
  time_one<128>(session, {1, 512, 0, 32, 8, 128}, true);
  time_one<128>(session, {16, 512, 0, 32, 8, 128}, true);
  time_one<128>(session, {8, 1024, 0, 32, 8, 128}, false);
  time_one<128>(session, {1, 2048, 0, 32, 8, 128}, true);
  time_one<128>(session, {4, 2048, 0, 32, 8, 128}, false);
  time_one<128>(session, {2, 8192, 0, 32, 8, 128}, false);
  time_one<128>(session, {1, 16384, 0, 32, 8, 128}, false);
  time_one<128>(session, {1, 512, 8192, 32, 8, 128}, false);
  time_one<128>(session, {1, 512, 32768, 32, 8, 128}, false);
  time_one<64>(session, {1, 512, 0, 9, 3, 64}, true);
  time_one<64>(session, {1, 2048, 0, 9, 3, 64}, true);
  time_one<64>(session, {1, 64, 8192, 9, 3, 64}, true);
  time_one<256>(session, {1, 512, 0, 4, 1, 256}, true);
  time_one<64>(session, {1, 512, 0, 9, 3, 64, 16, kF32}, true);
}

}  // namespace ridge::bench
