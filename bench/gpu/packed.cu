// Quantized linear from rows16, f32 activations: times, and the share of the read ceiling.

#include "harness.h"

#include <algorithm>

#include "base/text.h"
#include "kernels/linear_terms_call.cuh"
#include "kernels/rows16/rows16.h"

namespace ridge::bench {

namespace {

using cuda::LinearTermsCall;

template <DType dtype>
void bench_shape(Session& session, int64_t out, int64_t in, int64_t tokens, int parts) {
  const int64_t tile_bytes = rows16::tile_bytes(dtype, in), bytes = rows16::tiles(out) * tile_bytes;
  const int sets = std::clamp(static_cast<int>(230e6 / static_cast<double>(bytes)) + 1, 2, 400);
  const DeviceBlock w(bytes * sets), x(tokens * in * 4), y(tokens * out * 4);
  const DeviceBlock workspace(cuda::split_terms_bytes(tokens, in, 3));
  // As f16 scales these bits are finite; as codes they are anything.
  fill_field(w.as<bf16>(), bytes * sets / 2, 1);
  fill_field(x.as<float>(), tokens * in, 2);
  const auto run = [&](cudaStream_t stream, int set) {
    LinearTermsCall c;
    c.matrices[0].w = w.as<uint8_t>() + set * bytes, c.matrices[0].y = y.as<float>();
    c.matrices[0].out = c.matrices[0].y_stride = out, c.x = x.as<const unsigned char>();
    c.split_x = workspace.as<uint4>();
    c.tokens = tokens, c.in = in, c.tile_bytes = tile_bytes, c.x_stride = in;
    c.panels = static_cast<int>(in / 32), c.units = (c.panels + 1) / 2;
    c.parts = parts, c.part_units = (c.units + parts - 1) / parts, c.vectors = true;
    must(cuda::launch_linear_terms<dtype>(stream, c, session.multiprocessors()));
  };
  Condition condition;
  condition.row = text("packed-", dtype_name(dtype), "-", out, "x", in, "-m", tokens);
  condition.text = text(dtype_name(dtype), " in rows16, f32 x, ", out, " x ", in, ", M = ", tokens);
  condition.bytes = static_cast<double>(bytes),
  condition.flops = 2.0 * static_cast<double>(tokens * out * in);
  condition.sets = sets;
  session.measure(condition, {{text("linear_terms, ", parts, " parts"), run, true}});
}

}  // namespace

void bench_packed(Session& session, bool) {
  for (const int64_t tokens : {1, 8}) {
    bench_shape<kQ4_1>(session, 576, 576, tokens, 16);
    bench_shape<kQ4_1>(session, 1536, 576, tokens, 16);
    bench_shape<kQ4_1>(session, 576, 1536, tokens, 16);
    bench_shape<kQ8_0>(session, 49152, 576, tokens, 4);
    bench_shape<kQ4_1>(session, 4096, 4096, tokens, 16);
    bench_shape<kQ8_0>(session, 4096, 4096, tokens, 16);
    bench_shape<kQ5_0>(session, 4096, 4096, tokens, 16);
    bench_shape<kQ4_K>(session, 4096, 14336, tokens, 16);
    bench_shape<kQ6_K>(session, 4096, 14336, tokens, 16);
    bench_shape<kQ4_K>(session, 28672, 4096, tokens, 4);
  }
  for (const int64_t tokens : {16, 64, 512}) {
    bench_shape<kQ4_1>(session, 1536, 576, tokens, 16);
    bench_shape<kQ4_1>(session, 4096, 4096, tokens, 16);
  }
}

}  // namespace ridge::bench
