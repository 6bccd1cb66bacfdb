// Limit: the launch, and latency of one load an element; from a packed table a row is spread over all lines
// of its tile, as on the CPU. The host does not see the ids: one outside of the table gives a row of NaN,
// which sampling reports, and reads nothing.

#include <algorithm>

#include "device/launch.cuh"
#include "kernels/quantized.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/embedding/embedding.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

template <class Id>
struct EmbeddingCall {
  device::Fresh<float> y;       // [tokens, hidden]
  device::Fresh<const Id> ids;  // [tokens]
  const uint8_t* w = nullptr;   // [vocab, hidden]
  int64_t tokens = 0, hidden = 0, vocab = 0;
  int64_t y_stride = 0, id_stride = 0, w_stride = 0;  // elements; w_stride of plain types
  int64_t row_bytes = 0;                              // of a quantized row of the file, or of a packed tile
  DType dtype = kF32;
  bool packed = false;
  float scale = 1;
};

template <class Id>
__device__ float weight_at(const EmbeddingCall<Id>& call, int64_t row, int64_t h) {
  if (call.dtype == kF32) return reinterpret_cast<const float*>(call.w)[row * call.w_stride + h];
  if (call.dtype == kF16)
    return device::to_float(reinterpret_cast<const f16*>(call.w)[row * call.w_stride + h]);
  if (call.dtype == kBF16)
    return device::to_float(reinterpret_cast<const bf16*>(call.w)[row * call.w_stride + h]);
  if (call.packed)
    return rows16_value(call.dtype, call.w + row / 16 * call.row_bytes, call.hidden / 32,
                        static_cast<int>(row % 16), h);
  const bool large = call.dtype == kQ4_K || call.dtype == kQ6_K;
  const int64_t block = large ? 256 : 32, blocks = call.hidden / block;
  return file_value(call.dtype, call.w + row * call.row_bytes + h / block * (call.row_bytes / blocks),
                    static_cast<int>(h % block));
}

template <class Id>
__global__ __launch_bounds__(256) void embedding_elements(device::Upstream upstream, EmbeddingCall<Id> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t all = call.tokens * call.hidden, step = int64_t{gridDim.x} * 256;
  for (int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x; i < all; i += step) {
    const int64_t token = i / call.hidden, h = i % call.hidden;
    const int64_t id = call.ids.after(waited)[token * call.id_stride];
    call.y.after(waited)[token * call.y_stride + h] =
        id < 0 || id >= call.vocab ? NAN : weight_at(call, id, h) * call.scale;
  }
}

Decline declines(const EmbeddingArgs& a) {
  if (a.w.layout != nullptr && (a.w.layout != rows16::layout(a.w.dtype) || !is_block_quantized(a.w.dtype)))
    return decline("w is in layout ", a.w.layout->name, ", needs the file's, or rows16 of a quantized type");
  return dense_rows({{"y", &a.y}, {"w", &a.w}});
}

Status run(Stream& stream, const EmbeddingArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<int32_t, int64_t>(a.ids, [&]<class Id>(Id) {
    EmbeddingCall<Id> call;
    call.y = a.y.as<float>(), call.ids = a.ids.as<const Id>(), call.w = a.w.as<const uint8_t>();
    call.tokens = a.y.dim(0), call.hidden = a.y.dim(1), call.vocab = a.w.dim(0);
    call.y_stride = a.y.stride(0), call.id_stride = a.ids.stride(0), call.w_stride = a.w.stride(0);
    call.dtype = a.w.dtype, call.packed = a.w.layout != nullptr, call.scale = a.scale;
    if (is_block_quantized(a.w.dtype))
      call.row_bytes = call.packed ? rows16::tile_bytes(a.w.dtype, call.hidden)
                                   : call.hidden / dtype_block(a.w.dtype) * dtype_block_bytes(a.w.dtype);
    device::LaunchShape shape;
    shape.block.x = 256;
    shape.grid.x = static_cast<unsigned>(std::min((a.y.elements() + 255) / 256, int64_t{8192}));
    return device::launch_dependent(as_cuda(stream).native(), shape, "embedding_elements",
                                    embedding_elements<Id>, call);
  });
}

}  // namespace

void embedding_cuda(Kernels<EmbeddingArgs>& kernels) {
  kernels.add("embedding_elements", declines, run);
}

}  // namespace ridge::cuda
