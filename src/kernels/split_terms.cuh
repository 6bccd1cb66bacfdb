#pragma once
// x as terms of bf16, laid out as operand b of the matrix step: by a warp for its own part of one or two
// tokens, or by a launch for many.

#include "kernels/linear_terms_call.cuh"

namespace ridge::cuda {

/// The x of kUnits units for one or two tokens, spread over a warp: lane = 8 (panel mod 4) + 4 step + t.
template <int kUnits, bool kNeighbours>
struct SplitX {
  static constexpr int kItems = kUnits / 2;  // four panels each
  float4 v[2][kItems];

  __device__ __forceinline__ void load(const LinearTermsCall& call, const unsigned char* x, int first_unit,
                                       int end) {
    const int lane = threadIdx.x & 31, step = lane >> 2 & 1, t = lane & 3;
#pragma unroll
    for (int token = 0; token < 2; ++token)
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const int panel = 2 * first_unit + 4 * i + (lane >> 3);
        v[token][i] = {};
        if (token < call.tokens && panel < min(2 * end, call.panels))
          v[token][i] = load_x(call, x, token, column_of(kNeighbours, panel, step, t));
      }
  }
  /// To `shared`, [panels, 8 columns, 4 t, 16 bytes]; columns of no token are not written.
  __device__ __forceinline__ void split(const LinearTermsCall& call, unsigned char* shared) {
    const int lane = threadIdx.x & 31, step = lane >> 2 & 1, t = lane & 3;
#pragma unroll
    for (int token = 0; token < 2; ++token) {
      if (token >= call.tokens) break;
#pragma unroll
      for (int i = 0; i < kItems; ++i)
#pragma unroll
        for (int term = 0; term < 3; ++term) {
          if (term >= call.terms) break;
          const uint2 four = take_term(v[token][i]);
          *reinterpret_cast<uint2*>(shared + (4 * i + (lane >> 3)) * 512 +
                                    ((token * call.terms + term) * 4 + t) * 16 + step * 8) = four;
        }
    }
  }
};

/// All of x into call.split_x: a thread has one column and place t of a panel, both steps. Columns of no
/// token, and panels beyond the last, become 0.
static __global__ __launch_bounds__(256) void split_terms(device::Upstream upstream, LinearTermsCall call,
                                                          bool neighbours, int64_t items) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const unsigned char* const x = call.x.after(waited);
  uint4* const to = call.split_x.after(waited);
  const int per_group = kManyColumns * 8 / call.terms, panels = 2 * call.units;
  for (int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x; i < items; i += int64_t{gridDim.x} * 256) {
    const int t = static_cast<int>(i & 3), column = static_cast<int>(i >> 2) % (kManyColumns * 8);
    const int64_t panel = i / (kManyColumns * 32) % panels, group = i / (kManyColumns * 32) / panels;
    const int64_t token = group * per_group + column / call.terms;
    uint2 steps[2] = {};
    if (column / call.terms < per_group && token < call.tokens && panel < call.panels)
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        float4 v = load_x(call, x, token, column_of(neighbours, panel, step, t));
        for (int term = 0; term <= column % call.terms; ++term) steps[step] = take_term(v);
      }
    to[i] = {steps[0].x, steps[0].y, steps[1].x, steps[1].y};
  }
}

}  // namespace ridge::cuda
