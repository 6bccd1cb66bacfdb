// Limit: latency of a few cache lines a row; from a packed table, a row of 16 interleaved ones is spread over
// all lines of its tile (18 KiB at 2048 columns of 4 bits), which is still below a microsecond.

#include "kernels/rows16/rows16.h"
#include "ops/embedding/embedding.h"
#include "runtime/cpu/cpu_device.h"
#include "tensor/blocks.h"

namespace ridge::RIDGE_ISA {

namespace {

/// One row as in the file.
void decode_file_row(const Tensor& w, int64_t row, float* out) {
  const int64_t hidden = w.dim(1);
  if (!is_block_quantized(w.dtype)) {
    const auto copy = [&](const auto* values) {
      for (int64_t h = 0; h < hidden; ++h) out[h] = to_f32(values[h]);
    };
    if (w.dtype == kF32) return copy(w.row<float>(row));
    if (w.dtype == kF16) return copy(w.row<f16>(row));
    return copy(w.row<bf16>(row));
  }
  const int64_t block = dtype_block(w.dtype), blocks = hidden / block;
  const uint8_t* first = w.as<uint8_t>() + row * blocks * dtype_block_bytes(w.dtype);
  for (int64_t b = 0; b < blocks; ++b) {
    double values[256];
    decode_block(w.dtype, first, b, values);
    for (int64_t i = 0; i < block; ++i) out[b * block + i] = static_cast<float>(values[i]);
  }
}

Decline declines(const EmbeddingArgs& a) {
  if (a.w.layout != nullptr && a.w.layout != rows16::layout(a.w.dtype))
    return decline("w is in layout ", a.w.layout->name, ", needs rows16 or the file's");
  if (!a.y.rows_are_dense()) return decline("y has strides along hidden: make y dense");
  if (!a.w.rows_are_dense()) return decline("w has strides along hidden: copy w");
  return {};
}

Status check_ids(const EmbeddingArgs& a) {
  for (int64_t t = 0; t < a.ids.dim(0); ++t)
    if (const int64_t id = a.ids.i64(t); id < 0 || id >= a.w.dim(0))
      return invalid_argument("embedding: ids[", t, "] is ", id, ", the table has ", a.w.dim(0), " rows");
  return {};
}

Status run(Stream& stream, const EmbeddingArgs& a) {
  RIDGE_TRY(check_ids(a));
  const int64_t hidden = a.w.dim(1);
  return as_cpu(stream).for_each(a.y.dim(0), 16.0 * static_cast<double>(hidden), [&](int64_t t) {
    auto* y = a.y.row<float>(t);
    if (a.w.layout != nullptr)
      rows16::decode_row(a.w.dtype, a.w.data, hidden, a.ids.i64(t), y);
    else
      decode_file_row(a.w, a.ids.i64(t), y);
    if (a.scale != 1.0f)
      for (int64_t h = 0; h < hidden; ++h) y[h] *= a.scale;
  });
}

}  // namespace

void embedding_cpu(Kernels<EmbeddingArgs>& kernels) {
  kernels.add("embedding_by_row", declines, run);
}

}  // namespace ridge::RIDGE_ISA
