// G9: row-wise operators in bf16 (rope_kv_write: f32 into bf16 pages, as the operator is), beside the best
// peers' times of the project's table (not in this run).

#include <cmath>

#include "harness.h"
#include "kernels/rope_kv.cuh"
#include "kernels/rowwise.cuh"

namespace ridge::bench {

namespace {

using cuda::GluCall;
using cuda::RmsNormCall;
using cuda::RopeKvCall;

double b16(double v) {
  return to_f32(to_bf16(static_cast<float>(v)));
}
double input(int64_t i, uint64_t seed) {
  return b16(field(static_cast<uint64_t>(i), seed));
}

std::vector<bf16> download(const DeviceBlock& block) {
  std::vector<bf16> host(static_cast<size_t>(block.bytes / 2));
  must(cudaMemcpy(host.data(), block.data, host.size() * 2, cudaMemcpyDeviceToHost), "download");
  return host;
}
double judge(double worst, double got, double expect, double slack) {
  const double ratio = std::fabs(got - expect) / (0x1p-8 * std::fabs(expect) + slack);
  return std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
}

/// kAdd or not, any hidden and offset from alignment; rows are hidden + gap apart, gaps hold NaN.
template <bool kAdd>
void check_norm(Session& session, int64_t rows, int64_t hidden, int64_t offset, int64_t gap) {
  const int64_t stride = hidden + gap, count = rows * stride + offset + 8;
  DeviceBlock x(2 * count), addend(2 * count), sum(2 * count), y(2 * count), w(2 * hidden);
  for (auto* b : {&x, &addend, &sum, &y}) fill_bytes(b->data, b->bytes, 0xff);
  for (int64_t r = 0; r < rows; ++r) {
    fill_field(x.as<bf16>() + offset + r * stride, hidden, 1, 1, static_cast<uint64_t>(r * hidden));
    fill_field(addend.as<bf16>() + offset + r * stride, hidden, 2, 1, static_cast<uint64_t>(r * hidden));
  }
  fill_field(w.as<bf16>(), hidden, 3);
  RmsNormCall<bf16, bf16, bf16> c;
  c.x = x.as<const bf16>() + offset, c.y = y.as<bf16>() + offset, c.w = w.as<bf16>();
  if (kAdd) c.addend = addend.as<const bf16>() + offset, c.sum = sum.as<bf16>() + offset;
  c.rows = rows, c.hidden = hidden, c.x_stride = c.y_stride = c.sum_stride = c.addend_stride = stride,
  c.epsilon = 1e-5f, c.weight_offset = 0.5f;
  must(cudaDeviceSynchronize(), "fill");
  must((cuda::launch_rms_norm<kAdd>(session.stream(), c, offset % 8 == 0 && stride % 8 == 0)));
  must(cudaStreamSynchronize(session.stream()), "rms_norm");
  const auto got = download(y), got_sum = download(sum);
  double worst = 0, outside = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    const auto value = [&](int64_t h) {
      return kAdd ? b16(input(r * hidden + h, 1) + input(r * hidden + h, 2)) : input(r * hidden + h, 1);
    };
    for (int64_t h = 0; h < hidden; ++h) squares += value(h) * value(h);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + 1e-5);
    for (int64_t h = 0; h < hidden; ++h) {
      const size_t at = static_cast<size_t>(offset + r * stride + h);
      worst = judge(worst, to_f32(got[at]), value(h) * scale * (input(h, 3) + 0.5), 1e-5);
      if (kAdd) worst = judge(worst, to_f32(got_sum[at]), value(h), 1e-30);
    }
    for (int64_t h = hidden; h < stride; ++h)
      outside += got[static_cast<size_t>(offset + r * stride + h)].bits != 0xffff;
  }
  session.check(worst <= 1 && outside == 0,
                std::string(kAdd ? "add_rms_norm" : "rms_norm") + " rows " + std::to_string(rows) +
                    " hidden " + std::to_string(hidden) + " offset " + std::to_string(offset),
                worst, 1);
}

void check_glu(Session& session, int64_t rows, int64_t inner, int64_t offset) {
  DeviceBlock x(2 * (rows * 2 * inner + offset + 8)), y(2 * (rows * inner + offset + 8));
  fill_bytes(x.data, x.bytes, 0xff), fill_bytes(y.data, y.bytes, 0xff);
  fill_field(x.as<bf16>() + offset, rows * 2 * inner, 1);
  GluCall<bf16> c;
  c.gate = x.as<const bf16>() + offset, c.up = x.as<const bf16>() + offset + inner,
  c.y = y.as<bf16>() + offset;
  c.rows = rows, c.inner = inner, c.y_stride = inner, c.gate_stride = c.up_stride = 2 * inner;
  must(cudaDeviceSynchronize(), "fill");
  for (const bool gelu : {false, true}) {
    const bool aligned = offset % 8 == 0 && inner % 8 == 0;
    must(gelu ? cuda::launch_glu<cuda::GeluTanh>(session.stream(), c, aligned)
              : cuda::launch_glu<cuda::Silu>(session.stream(), c, aligned));
    must(cudaStreamSynchronize(session.stream()), "glu");
    const auto got = download(y);
    double worst = 0;
    for (int64_t i = 0; i<rows * inner; i += rows * inner> 100000 ? 37 : 1) {
      const double g = input(i / inner * 2 * inner + i % inner, 1),
                   u = input(i / inner * 2 * inner + inner + i % inner, 1);
      const double f = gelu ? 0.5 * g * (1 + std::tanh(0.79788456080286536 * (g + 0.044715 * g * g * g)))
                            : g / (1 + std::exp(-g));
      worst = judge(worst, to_f32(got[static_cast<size_t>(offset + i)]), f * u, 2e-6);
    }
    session.check(worst <= 1,
                  std::string(gelu ? "gelu_mul" : "silu_mul") + " rows " + std::to_string(rows) + " inner " +
                      std::to_string(inner) + " offset " + std::to_string(offset),
                  worst, 1);
  }
}

/// q, k and v in f32, as linear leaves them, into bf16 pages.
struct RopeData {
  int64_t tokens, heads = 32, kv_heads = 8, d, rotary, page = 16, pages;
  int sets;
  DeviceBlock qkv, k_pages, v_pages, positions, slots, frequencies;
  std::vector<int64_t> position, slot;
  std::vector<float> frequency;
  RopeData(int64_t t, int64_t head_dim, int64_t rotary_dim, int sets_in)
      : tokens(t),
        d(head_dim),
        rotary(rotary_dim),
        pages(t / 16 + 2),
        sets(sets_in),
        qkv(4 * t * 48 * head_dim * sets),
        k_pages(2 * pages * 16 * 8 * head_dim),
        v_pages(2 * pages * 16 * 8 * head_dim),
        positions(8 * t),
        slots(8 * t),
        frequencies(2 * rotary) {
    fill_field(qkv.as<float>(), t * 48 * d * sets, 1);
    fill_bytes(k_pages.data, k_pages.bytes, 0xff), fill_bytes(v_pages.data, v_pages.bytes, 0xff);
    for (int64_t i = 0; i < rotary / 2; ++i)
      frequency.push_back(static_cast<float>(
          std::pow(500000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary))));
    for (int64_t i = 0; i < t; ++i)
      position.push_back(i * 7919 % 8192),
          slot.push_back(t > 1 && i % 5 == 3 ? -1 : (i * 5 + 1) % (pages * 16));
    must(cudaMemcpy(frequencies.data, frequency.data(), frequency.size() * 4, cudaMemcpyHostToDevice),
         "frequencies");
    must(cudaMemcpy(positions.data, position.data(), position.size() * 8, cudaMemcpyHostToDevice),
         "positions");
    must(cudaMemcpy(slots.data, slot.data(), slot.size() * 8, cudaMemcpyHostToDevice), "slots");
  }
  RopeKvCall<bf16, bf16> call(int set) const {
    RopeKvCall<bf16, bf16> c;
    float* const base = qkv.as<float>() + set * tokens * 48 * d;
    c.q = base, c.k = static_cast<const float*>(base + 32 * d),
    c.v = static_cast<const float*>(base + 40 * d);
    c.k_pages.data = k_pages.as<bf16>(), c.v_pages.data = v_pages.as<bf16>();
    for (auto* strides : {c.k_pages.strides, c.v_pages.strides})
      strides[0] = page * 8 * d, strides[1] = page * d, strides[2] = d;
    for (auto* strides : {c.q_strides, c.k_strides, c.v_strides}) strides[0] = 48 * d, strides[1] = d;
    c.positions = positions.data, c.wide_positions = true, c.slots = slots.as<int64_t>();
    c.frequencies = frequencies.as<float>();
    c.slot_stride = c.position_stride = c.frequency_stride = 1;
    c.tokens = tokens, c.heads = heads, c.kv_heads = kv_heads, c.head_dim = d, c.pairs = rotary / 2;
    c.page_size = page, c.capacity = pages * page, c.settled = true, c.quads = d % 8 == 0 && rotary % 8 == 0;
    return c;
  }
};

void check_rope(Session& session, int64_t tokens, int64_t d, int64_t rotary) {
  RopeData data(tokens, d, rotary, 1);
  must(cudaDeviceSynchronize(), "fill");
  must(cuda::launch_rope_kv(session.stream(), data.call(0)));
  must(cudaStreamSynchronize(session.stream()), "rope");
  std::vector<float> q(static_cast<size_t>(data.qkv.bytes / 4));
  must(cudaMemcpy(q.data(), data.qkv.data, q.size() * 4, cudaMemcpyDeviceToHost), "download");
  const auto k = download(data.k_pages), v = download(data.v_pages);
  double worst = 0, outside = 0;
  std::vector<bool> written(static_cast<size_t>(data.pages * 16));
  const auto page_row = [&](int64_t slot, int64_t head) {
    return static_cast<size_t>(((slot / 16 * 8 + head) * 16 + slot % 16) * d);
  };
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < 40; ++h) {
      const bool key = h >= 32;
      const int64_t slot = data.slot[static_cast<size_t>(t)];
      if (key && slot < 0) continue;
      if (key) written[static_cast<size_t>(slot)] = true;
      const auto in = [&](int64_t i) -> double {
        return field(static_cast<uint64_t>(t * 48 * d + h * d + i), 1);
      };
      for (int64_t i = 0; i < d; ++i) {
        double expect = in(i);
        if (i < rotary) {
          const int64_t pair = i % (rotary / 2);
          const double angle = static_cast<double>(data.position[static_cast<size_t>(t)]) *
                               static_cast<double>(data.frequency[static_cast<size_t>(pair)]);
          expect = i < rotary / 2 ? in(i)*std::cos(angle) - in(i + rotary / 2) * std::sin(angle)
                                  : in(i)*std::cos(angle) + in(i - rotary / 2) * std::sin(angle);
        }
        worst = key ? judge(worst, to_f32(k[page_row(slot, h - 32) + static_cast<size_t>(i)]), expect, 2e-6)
                    : std::max(worst,
                               std::fabs(static_cast<double>(q[static_cast<size_t>(t * 48 * d + h * d + i)]) -
                                         expect) /
                                   2e-6);
      }
      if (key)
        for (int64_t i = 0; i < d; ++i)
          outside += v[page_row(slot, h - 32) + static_cast<size_t>(i)].bits !=
                     to_bf16(field(static_cast<uint64_t>(t * 48 * d + (h + 8) * d + i), 1)).bits;
    }
  }
  for (size_t s = 0; s < written.size(); ++s)
    if (!written[s])
      for (int64_t h = 0; h < 8; ++h)
        for (int64_t i = 0; i < d; ++i)
          outside += k[page_row(static_cast<int64_t>(s), h) + static_cast<size_t>(i)].bits != 0xffff;
  session.check(worst <= 1 && outside == 0,
                "rope_kv_write tokens " + std::to_string(tokens) + " head_dim " + std::to_string(d) +
                    " rotary " + std::to_string(rotary),
                worst, 1);
}

int sets_for(double bytes) {
  return std::max(2, std::min(64, static_cast<int>(230e6 / bytes) + 1));
}

}  // namespace

void check_rows(Session& session) {
  for (const int64_t hidden : {1, 2, 3, 7, 46, 576, 1024, 2560, 3584, 3586, 4096, 5120, 8192, 16384, 40000}) {
    for (const int64_t rows : {1, 3})
      check_norm<false>(session, rows, hidden, 0, 8), check_norm<true>(session, rows, hidden, 0, 8);
    check_norm<false>(session, 2, hidden, 1, 3), check_norm<true>(session, 2, hidden, 1, 3);
  }
  check_norm<false>(session, 300, 4096, 0, 0), check_norm<true>(session, 300, 4096, 0, 0),
      check_norm<false>(session, 0, 64, 0, 0);
  for (const auto& [rows, inner, offset] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {1, 1, 0}, {3, 7, 0}, {2, 4096, 0}, {2, 4096, 1}, {5, 1000, 0}, {40, 14336, 0}})
    check_glu(session, rows, inner, offset);
  for (const auto& [d, rotary] : std::vector<std::pair<int64_t, int64_t>>{
           {128, 128}, {64, 64}, {80, 80}, {96, 96}, {128, 64}, {256, 256}, {192, 192}})
    for (const int64_t tokens : {1, 7, 270}) check_rope(session, tokens, d, rotary);
}

void bench_rows(Session& session, bool) {
  constexpr int64_t kHidden = 4096, kInner = 14336;
  const int64_t sizes[] = {1, 64, 4096};
  for (int i = 0; i < 3; ++i) {
    const int64_t t = sizes[i];
    const auto condition = [&](const char* row, double bytes, double peer_us, int sets) {
      Condition c{std::string("G9-") + row + "-" + std::to_string(t),
                  std::string(row) + " bf16, tokens " + std::to_string(t), bytes, 0, sets};
      c.target_us = 1.05 * peer_us, c.target = "<= 1.05 of the best peer's " +
                                               std::to_string(peer_us).substr(0, 5) + " us (not in this run)";
      return c;
    };
    const double n = static_cast<double>(t * kHidden);
    {
      const int sets = sets_for(4 * n);
      DeviceBlock x(2 * t * kHidden * sets), y(2 * t * kHidden * sets), a(2 * t * kHidden * sets),
          w(2 * kHidden);
      fill_field(x.as<bf16>(), t * kHidden * sets, 1), fill_field(a.as<bf16>(), t * kHidden * sets, 2),
          fill_field(w.as<bf16>(), kHidden, 3);
      RmsNormCall<bf16, bf16, bf16> c;
      c.w = w.as<bf16>(), c.rows = t,
      c.hidden = c.x_stride = c.y_stride = c.sum_stride = c.addend_stride = kHidden, c.epsilon = 1e-5f;
      const double peer[] = {1.60, 2.62, 20.48}, peer_add[] = {1.80, 2.89, 34.91};
      const auto norm = [&](int threads) -> Contender {
        return {"rms_norm_row " + std::to_string(threads), [&, threads](cudaStream_t stream, int s) {
                  auto one = c;
                  one.x = x.as<const bf16>() + s * t * kHidden, one.y = y.as<bf16>() + s * t * kHidden;
                  must((cuda::launch_rms_norm<false>(stream, one, true, threads)));
                }};
      };
      const auto add_norm = [&](int threads) -> Contender {
        return {
            "rms_norm_row, in place, " + std::to_string(threads), [&, threads](cudaStream_t stream, int s) {
              auto one = c;
              one.x = x.as<const bf16>() + s * t * kHidden, one.addend = a.as<const bf16>() + s * t * kHidden;
              one.sum = a.as<bf16>() + s * t * kHidden, one.y = x.as<bf16>() + s * t * kHidden;
              must((cuda::launch_rms_norm<true>(stream, one, true, threads)));
            }};
      };
      session.measure(condition("rms_norm", 4 * n, peer[i], sets), {norm(128), norm(256), norm(512)});
      session.measure(condition("add_rms_norm", 8 * n, peer_add[i], sets),
                      {add_norm(128), add_norm(256), add_norm(512)});
    }
    {
      const double elements = static_cast<double>(t * kInner), peer[] = {3.29, 4.07, 89.37};
      const int sets = sets_for(6 * elements);
      DeviceBlock x(4 * t * kInner * sets), y(2 * t * kInner * sets);
      fill_field(x.as<bf16>(), 2 * t * kInner * sets, 1);
      session.measure(condition("silu_mul", 6 * elements, peer[i], sets),
                      {{"glu_groups", [&](cudaStream_t stream, int s) {
                          GluCall<bf16> c;
                          const bf16* const gate = x.as<bf16>() + s * 2 * t * kInner;
                          c.gate = gate, c.up = gate + kInner, c.y = y.as<bf16>() + s * t * kInner;
                          c.rows = t, c.inner = c.y_stride = kInner, c.gate_stride = c.up_stride = 2 * kInner;
                          must(cuda::launch_glu<cuda::Silu>(stream, c, true));
                        }}});
    }
    {
      const double peer[] = {1.60 + 2.02, 2.51 + 2.58, 25.86 + 24.81},
                   bytes = static_cast<double>(t) * 128 * (48 * 4 + 32 * 4 + 16 * 2);
      RopeData data(t, 128, 128, sets_for(bytes));
      // Every token is written: the bench has no padding.
      for (int64_t j = 0; j < t; ++j) data.slot[static_cast<size_t>(j)] = (j * 5 + 1) % (data.pages * 16);
      must(cudaMemcpy(data.slots.data, data.slot.data(), data.slot.size() * 8, cudaMemcpyHostToDevice),
           "slots");
      session.measure(condition("rope_kv_write", bytes, peer[i], data.sets),
                      {{"rope_kv_write", [&](cudaStream_t stream, int s) {
                          must(cuda::launch_rope_kv(stream, data.call(s)));
                        }}});
    }
  }
}

}  // namespace ridge::bench
