// G6: paged decode attention in bf16.

#include <algorithm>
#include <cmath>

#include "harness.h"
#include "kernels/attention_decode.cuh"

namespace ridge::bench {

namespace {

using cuda::AttentionDecodeCall;
using cuda::DecodeTraits;

template <class T>
struct Variant {
  const char* name;
  Status (*launch)(cudaStream_t, const AttentionDecodeCall<T>&, int);
  int64_t (*partial_bytes)(int, int64_t);
  int rows;
};
// clang-format off
#define DECODE(T, ...) {#__VA_ARGS__, cuda::launch_attention_decode<DecodeTraits<__VA_ARGS__>, T, T>, \
    cuda::decode_partial_bytes<DecodeTraits<__VA_ARGS__>>, DecodeTraits<__VA_ARGS__>::kRows}
// clang-format on

// head_dim, rows, warps, stages, blocks an SM, least tiles of a share, by the copy engine
const std::vector<Variant<bf16>> kVariants = {
    DECODE(bf16, 128, 8, 5, 2, 2), DECODE(bf16, 128, 8, 5, 2, 2, 1, true),
    DECODE(bf16, 128, 8, 6, 2, 2, 1, true), DECODE(bf16, 128, 8, 7, 2, 1, 1, true),
    DECODE(bf16, 128, 8, 4, 3, 2, 1, true)};
struct Paged {
  int64_t heads, kv_heads, head_dim, page_size, pages = 0, table = 0;
  std::vector<int32_t> lengths, table_host;
  int sets;
  bool head_major;
  DeviceBlock k, v, q, out, lse, table_device, lengths_device, partials, arrivals;

  static int64_t count_pages(const std::vector<int32_t>& lengths, int64_t page) {
    int64_t n = 0;
    for (const int32_t l : lengths) n += ceil_div(l, page);
    return n;
  }
  Paged(std::vector<int32_t> lens, int64_t h, int64_t kvh, int64_t d, int64_t page, int set_count,
        int64_t spare, int64_t partial_bytes, bool head_major_in = false)
      : heads(h),
        kv_heads(kvh),
        head_dim(d),
        page_size(page),
        pages(count_pages(lens, page) + spare),
        table(ceil_div(*std::max_element(lens.begin(), lens.end()), page) + 3),
        lengths(std::move(lens)),
        sets(set_count),
        head_major(head_major_in),
        k(2 * pages * page * kvh * d * sets),
        v(2 * pages * page * kvh * d * sets),
        q(2 * batch() * h * d * sets),
        out(2 * batch() * h * d * sets),
        lse(4 * batch() * h),
        table_device(4 * batch() * table),
        lengths_device(8 * batch()),
        partials(partial_bytes),
        arrivals(4 * batch() * kvh * 16) {
    table_host.assign(static_cast<size_t>(batch() * table), 2147480000);
    std::vector<int32_t> order(static_cast<size_t>(pages));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>((field(i, 77) + 8) * 1e6) % i]);
    size_t next = 0;
    for (int64_t b = 0; b < batch(); ++b)
      for (int64_t p = 0; p < ceil_div(lengths[static_cast<size_t>(b)], page); ++p)
        table_host[static_cast<size_t>(b * table + p)] = order[next++];
    must(cudaMemcpy(table_device.data, table_host.data(), table_host.size() * 4, cudaMemcpyHostToDevice),
         "table");
    const std::vector<int64_t> wide(lengths.begin(), lengths.end());
    must(cudaMemcpy(lengths_device.data, wide.data(), wide.size() * 8, cudaMemcpyHostToDevice), "lengths");
    fill_bytes(partials.data, partials.bytes, 0xff), fill_bytes(arrivals.data, arrivals.bytes, 0);
    fill_bytes(out.data, out.bytes, 0xff), fill_bytes(lse.data, lse.bytes, 0xff);
  }
  int64_t batch() const { return static_cast<int64_t>(lengths.size()); }
  int64_t pool() const { return pages * page_size * kv_heads * head_dim; }
  int64_t slot_stride() const { return head_major ? head_dim : kv_heads * head_dim; }
  int64_t head_stride() const { return head_major ? page_size * head_dim : head_dim; }
  int64_t element(int64_t b, int64_t key, int64_t head) const {
    return int64_t{table_host[static_cast<size_t>(b * table + key / page_size)]} * page_size * kv_heads *
               head_dim +
           key % page_size * slot_stride() + head * head_stride();
  }
  template <class T>
  AttentionDecodeCall<T> call(int set, int rows) const {
    AttentionDecodeCall<T> c;
    c.out = out.as<T>() + set * batch() * heads * head_dim, c.lse = lse.as<float>(),
    c.q = q.as<const T>() + set * batch() * heads * head_dim;
    c.k = k.as<T>() + set * pool(), c.v = v.as<T>() + set * pool();
    c.pages = table_device.as<int32_t>(), c.lengths = lengths_device.as<int64_t>();
    c.partials = partials.as<float>(), c.arrivals = arrivals.as<uint32_t>();
    c.groups = kv_heads * ceil_div(heads / kv_heads, rows);
    c.batch = batch(), c.heads = heads, c.kv_heads = kv_heads, c.ratio = heads / kv_heads;
    c.page_count = pages, c.page_size = page_size, c.page_stride = page_size * kv_heads * head_dim,
    c.slot_stride = slot_stride(), c.head_stride = head_stride(), c.table_stride = c.max_pages = table;
    c.q_stride = c.out_stride = heads * head_dim;
    c.scale = 1 / std::sqrt(static_cast<float>(head_dim));
    c.whole_pages = page_size % 16 == 0;
    if ((page_size & (page_size - 1)) == 0)
      c.page_shift = __builtin_ctzll(static_cast<unsigned long long>(page_size));
    return c;
  }
};

template <class T>
double rounded(float v) {
  return kDTypeOf<T> == kBF16 ? to_f32(to_bf16(v)) : to_f32(to_f16(v));
}

/// Double-precision attention of one (sequence, head) against the field values at their places.
template <class T>
void reference(const Paged& p, const AttentionDecodeCall<T>& c, int64_t b, int64_t h,
               std::vector<double>& out, double& lse) {
  const int64_t n = p.lengths[static_cast<size_t>(b)],
                begin = c.window > 0 ? std::max<int64_t>(0, n - c.window) : 0, d = p.head_dim,
                kv = h / (p.heads / p.kv_heads);
  std::vector<double> s(static_cast<size_t>(n - begin));
  double top = -INFINITY, sum = 0;
  for (int64_t key = begin; key < n; ++key) {
    double dot = 0;
    const int64_t at = p.element(b, key, kv);
    for (int64_t i = 0; i < d; ++i)
      dot += rounded<T>(field(static_cast<uint64_t>((b * p.heads + h) * d + i), 5)) *
             rounded<T>(field(static_cast<uint64_t>(at + i), 6));
    dot *= c.scale;
    if (c.softcap > 0) dot = c.softcap * std::tanh(dot / c.softcap);
    s[static_cast<size_t>(key - begin)] = dot, top = std::max(top, dot);
  }
  out.assign(static_cast<size_t>(d), 0);
  for (double& v : s) sum += v = std::exp(v - top);
  for (int64_t key = begin; key < n; ++key)
    for (int64_t i = 0; i < d; ++i)
      out[static_cast<size_t>(i)] += s[static_cast<size_t>(key - begin)] / sum *
                                     rounded<T>(field(static_cast<uint64_t>(p.element(b, key, kv) + i), 7));
  lse = n > begin ? top + std::log(sum) : -INFINITY;
}

/// Live keys get field values, every other byte of the pools stays NaN; one launch (twice: the arrivals must
/// come back to 0), every (sequence, head) or a sample compared.
template <class T>
void check_case(Session& session, const Variant<T>& variant, std::vector<int32_t> lens, int64_t heads,
                int64_t kv_heads, int64_t head_dim, int64_t page, int64_t window, float softcap, bool settled,
                bool head_major = false) {
  Paged p(
      std::move(lens), heads, kv_heads, head_dim, page, 1, 3,
      variant.partial_bytes(session.multiprocessors(), kv_heads * ceil_div(heads / kv_heads, variant.rows)),
      head_major);
  fill_bytes(p.k.data, p.k.bytes, 0xff), fill_bytes(p.v.data, p.v.bytes, 0xff);
  fill_field(p.q.as<T>(), p.batch() * heads * head_dim, 5);
  std::vector<T> pool_k(static_cast<size_t>(p.pool()), T{0xffff}), pool_v = pool_k;
  const auto round_bits = [](float v) {
    if constexpr (kDTypeOf<T> == kBF16)
      return to_bf16(v);
    else
      return to_f16(v);
  };
  for (int64_t b = 0; b < p.batch(); ++b)
    for (int64_t key = 0; key < p.lengths[static_cast<size_t>(b)]; ++key)
      for (int64_t h = 0; h < kv_heads; ++h)
        for (int64_t i = 0; i < head_dim; ++i) {
          const int64_t at = p.element(b, key, h) + i;
          pool_k[static_cast<size_t>(at)] = round_bits(field(static_cast<uint64_t>(at), 6)),
          pool_v[static_cast<size_t>(at)] = round_bits(field(static_cast<uint64_t>(at), 7));
        }
  must(cudaMemcpy(p.k.data, pool_k.data(), pool_k.size() * 2, cudaMemcpyHostToDevice), "k");
  must(cudaMemcpy(p.v.data, pool_v.data(), pool_v.size() * 2, cudaMemcpyHostToDevice), "v");
  auto c = p.template call<T>(0, variant.rows);
  c.window = window, c.softcap = softcap;
  if (settled) c.lengths_settled = true, c.unsettled = 1;
  must(cudaDeviceSynchronize(), "fill");
  std::string what = std::string("attention ") + variant.name + " heads " + std::to_string(heads) + "/" +
                     std::to_string(kv_heads) + " page " + std::to_string(page) + " batch " +
                     std::to_string(p.batch()) + " longest " +
                     std::to_string(*std::max_element(p.lengths.begin(), p.lengths.end())) +
                     (window ? " window " + std::to_string(window) : "") + (softcap > 0 ? " softcap" : "") +
                     (head_major ? " head-major" : "") + (settled ? " settled" : "");
  std::vector<T> out(static_cast<size_t>(p.batch() * heads * head_dim)), before;
  std::vector<float> lse(static_cast<size_t>(p.batch() * heads));
  for (int round = 0; round < 2; ++round) {
    must(variant.launch(session.stream(), c, session.multiprocessors()));
    must(cudaStreamSynchronize(session.stream()), what.c_str());
    must(cudaMemcpy(out.data(), p.out.data, out.size() * 2, cudaMemcpyDeviceToHost), "out");
    must(cudaMemcpy(lse.data(), p.lse.data, lse.size() * 4, cudaMemcpyDeviceToHost), "lse");
    if (round == 0) before = out;
  }
  double same = 0;
  for (size_t i = 0; i < out.size(); ++i) same += out[i].bits != before[i].bits;
  session.check(same == 0, what + ": two calls agree bit for bit", same, 0);
  double worst = 0;
  const int64_t units = p.batch() * heads, step = units > 64 ? units / 61 : 1;
  for (int64_t u = 0; u < units; u += step) {
    std::vector<double> expect;
    double expect_lse;
    reference(p, c, u / heads, u % heads, expect, expect_lse);
    for (int64_t i = 0; i < head_dim; ++i) {
      // P is rounded to 16 bits (half an ulp of each, |V| about 1 on average and below 4), then the result.
      const double ulp = kDTypeOf<T> == kBF16 ? 0x1p-8 : 0x1p-11,
                   bound = ulp * (std::fabs(expect[static_cast<size_t>(i)]) + 1.0) + 1e-5;
      const double ratio =
          std::fabs(to_f32(out[static_cast<size_t>(u * head_dim + i)]) - expect[static_cast<size_t>(i)]) /
          bound;
      worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
    }
    const double got = lse[static_cast<size_t>(u)];
    const double ratio = std::isinf(expect_lse)
                             ? (got == expect_lse ? 0 : INFINITY)
                             : std::fabs(got - expect_lse) / (2e-6 * (std::fabs(expect_lse) + 8));
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  session.check(worst <= 1, what, worst, 1);
}

std::vector<int32_t>
ragged_lengths() {  // exp(uniform(ln 128, ln 32768)) of Python's random.Random(7): peers/attn.py
  return {771,   295,   4730, 191,   2499,  972,  177,  2134,  158,   1418,  189,  212,   1348,
          12545, 254,   441,  4152,  24520, 3141, 1155, 28725, 166,   14949, 638,  285,   246,
          708,   11821, 349,  3220,  4425,  1009, 2669, 181,   178,   401,   5569, 1371,  731,
          3291,  1580,  675,  10478, 6174,  496,  3094, 2355,  16396, 7310,  632,  29357, 246,
          1301,  8523,  297,  1926,  159,   5205, 8881, 3070,  16427, 729,   6049, 3456};
}

}  // namespace

void check_attention(Session& session) {
  for (const auto& v : kVariants) {
    check_case<bf16>(session, v, {1, 17, 100, 0, 5}, 32, 8, 128, 16, 0, 0, true);
    check_case<bf16>(session, v, {777, 5000, 64, 65, 63, 0, 1024}, 32, 8, 128, 16, 0, 0, false);
  }
  const auto &v = kVariants[0], &boxes = kVariants[1];
  for (const int64_t page : {1, 5, 8, 16, 24, 64, 256})
    check_case<bf16>(session, v, {300, 1, 4097}, 12, 4, 128, page, 0, 0, true);
  for (const auto& [h, kv] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {8, 2}, {20, 4}, {35, 5}, {56, 8}, {64, 8}, {71, 71}})
    check_case<bf16>(session, v, {513, 77}, h, kv, 128, 16, 0, 0, true);
  for (const int64_t page : {16, 32, 48, 64, 256})
    check_case<bf16>(session, boxes, {300, 1, 4097}, 12, 4, 128, page, 0, 0, true);
  check_case<bf16>(session, boxes, {2000, 31, 700}, 32, 8, 128, 16, 77, 30, true);
  check_case<bf16>(session, boxes, {2000, 31, 700}, 32, 8, 128, 16, 0, 0, true, true);
  check_case<bf16>(session, boxes, std::vector<int32_t>(300, 33), 32, 8, 128, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 64, 8, 4, 4, 2, 1, true), {900, 0, 33}, 32, 8, 64, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 192, 8, 4, 2, 2, 1, true), {900, 0, 33}, 32, 8, 192, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 256, 8, 4, 3, 1, 1, true), {900, 0, 33}, 32, 8, 256, 16, 0, 0, true);
  check_case<f16>(session, DECODE(f16, 128, 8, 5, 2, 2, 1, true), {900, 0, 33}, 32, 8, 128, 16, 0, 0, true);
  check_case<bf16>(session, v, {2000, 31, 700}, 32, 8, 128, 16, 128, 0, true);
  check_case<bf16>(session, v, {2000, 31, 700}, 32, 8, 128, 16, 77, 30, true);
  check_case<bf16>(session, v, {2000, 31, 700}, 32, 8, 128, 16, 0, 0, true, true);
  check_case<bf16>(session, v, std::vector<int32_t>(300, 33), 32, 8, 128, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 128, 16, 4, 3, 1), {900, 0, 33}, 32, 2, 128, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 128, 16, 4, 3, 1), {900, 0, 33}, 20, 1, 128, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 64, 8, 4, 4, 2), {900, 0, 33}, 32, 8, 64, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 80, 8, 5, 2, 2), {900, 0, 33}, 32, 8, 80, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 96, 8, 5, 2, 2), {900, 0, 33}, 32, 8, 96, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 192, 8, 4, 2, 2), {900, 0, 33}, 32, 8, 192, 16, 0, 0, true);
  check_case<bf16>(session, DECODE(bf16, 256, 8, 4, 3, 1), {900, 0, 33}, 32, 8, 256, 16, 0, 0, true);
  check_case<f16>(session, DECODE(f16, 128, 8, 5, 2, 2), {900, 0, 33}, 32, 8, 128, 16, 0, 0, true);
}

void bench_attention(Session& session, bool sweep) {
  struct Shape {
    const char* row;
    std::vector<int32_t> lengths;
    double peer_us, peer_share, share;  // peer_us > 0: target peer_share x peer_us; else share of R
  };
  std::vector<Shape> shapes = {{"G6-b1-kv1k", {1024}, 8.35, 0.75, 0},
                               {"G6-b1-kv8k", {8192}, 15.8, 0.8, 0},
                               {"G6-b1-kv128k", {131072}, 0, 0, 0.90},
                               {"G6-b8-kv4k", std::vector<int32_t>(8, 4096), 41.4, 1, 0},
                               {"G6-b64-kv8k", std::vector<int32_t>(64, 8192), 0, 0, 0.93},
                               {"G6-ragged-b64", ragged_lengths(), 0, 0, 0.85}};
  int64_t partial_bytes = 0;
  for (const auto& v : kVariants)
    partial_bytes = std::max(partial_bytes, v.partial_bytes(session.multiprocessors(), 8));
  for (const bool head_major : {true, false})
    for (const auto& shape : shapes) {
      int64_t keys = 0;
      for (const int32_t l : shape.lengths) keys += l;
      const double kv_bytes = 4.0 * static_cast<double>(keys) * 8 * 128;
      Paged p(shape.lengths, 32, 8, 128, 16,
              std::max(1, std::min(64, static_cast<int>(256e6 / kv_bytes) + 1)), 0, partial_bytes,
              head_major);
      fill_field(p.k.as<bf16>(), p.pool() * p.sets, 6), fill_field(p.v.as<bf16>(), p.pool() * p.sets, 7),
          fill_field(p.q.as<bf16>(), p.batch() * 32 * 128 * p.sets, 5);
      Condition condition{shape.row + std::string(head_major ? "" : "-token-major"),
                          std::string("paged decode bf16, 32/8 heads, head_dim 128, pages of 16 shuffled, ") +
                              (head_major ? "[pages, kv_heads, page_size, head_dim]"
                                          : "[pages, page_size, kv_heads, head_dim]") +
                              ", batch " + std::to_string(p.batch()) + ", keys " + std::to_string(keys),
                          kv_bytes + 4.0 * static_cast<double>(p.batch()) * 32 * 128,
                          4.0 * static_cast<double>(keys) * 32 * 128, p.sets};
      condition.target_us = shape.peer_us > 0 ? shape.peer_us * shape.peer_share
                                              : condition.bytes / session.read_ceiling / shape.share;
      condition.target = shape.peer_us > 0
                             ? std::to_string(shape.peer_share).substr(0, 4) + " of the best peer's " +
                                   std::to_string(shape.peer_us).substr(0, 5) + " us (not in this run)"
                             : std::to_string(static_cast<int>(shape.share * 100)) + " % of R";
      std::vector<Contender> contenders;
      for (const auto& v : kVariants)
        for (const int mode : {0, 1}) {
          if (mode == 0 && !sweep && &v == &kVariants[4]) continue;
          contenders.push_back({std::string(v.name) + (mode ? " early" : " waits first"),
                                [&, mode, launch = v.launch](cudaStream_t stream, int set) {
                                  auto c = p.template call<bf16>(set, 8);
                                  if (mode) c.lengths_settled = true, c.unsettled = 1;
                                  must(launch(stream, c, session.multiprocessors()));
                                }});
        }
      session.measure(condition, contenders);
    }
}

}  // namespace ridge::bench
