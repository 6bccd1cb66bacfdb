#include "formats/gguf_weights.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>

#include "base/checked.h"
#include "base/pieces.h"
#include "tensor/blocks.h"

namespace ridge {

namespace {

constexpr int64_t kPieceBytes = 4 << 20;

struct Piece {
  size_t tensor;
  int64_t first, count;  // blocks
};

bool may_be_bad(DType dtype) {
  return is_block_quantized(dtype) || dtype == kF32 || dtype == kF16 || dtype == kBF16;
}

std::vector<Piece> pieces_of(const GgufFile& file) {
  std::vector<Piece> out;
  for (size_t t = 0; t < file.tensors().size(); ++t) {
    const GgufTensor& info = file.tensors()[t];
    if (!info.type->dtype || !may_be_bad(*info.type->dtype)) continue;
    const int64_t block_bytes = dtype_block_bytes(*info.type->dtype);
    const int64_t blocks = info.bytes / block_bytes, step = kPieceBytes / block_bytes;
    for (int64_t first = 0; first < blocks; first += step)
      out.push_back({t, first, std::min(step, blocks - first)});
  }
  return out;
}

/// The bad weights among `blocks` blocks at `data`, whose first weight has index `index`.
BadWeights look_through(DType dtype, const void* data, int64_t blocks, int64_t index) {
  BadWeights bad = {"", -1, 0, 0};
  const int64_t size = dtype_block(dtype);
  const Tensor plain(const_cast<void*>(data), dtype, {blocks});
  double values[256];
  for (int64_t b = 0; b < blocks; ++b) {
    if (size == 1)
      values[0] = plain.f64(b);
    else
      decode_block(dtype, data, b, values);
    for (int64_t i = 0; i < size; ++i) {
      if (std::isfinite(values[i])) continue;
      if (bad.count++ == 0) bad.first = index + b * size + i, bad.value = values[i];
    }
  }
  return bad;
}

}  // namespace

Result<std::vector<BadWeights>> find_bad_weights(const GgufFile& file, int threads) try {
  if (threads < 1 || threads > limits::kThreads)
    return invalid_argument("threads is ", threads, ", wanted 1 to ", limits::kThreads);
  const std::vector<Piece> pieces = pieces_of(file);
  std::vector<Buffer> buffers(static_cast<size_t>(threads));
  std::vector<BadWeights> found(file.tensors().size(), BadWeights{"", -1, 0, 0});
  std::mutex mutex;
  const auto look = [&](int64_t p, int thread) -> Status {
    const Piece& piece = pieces[static_cast<size_t>(p)];
    const GgufTensor& info = file.tensors()[piece.tensor];
    const DType dtype = *info.type->dtype;
    const int64_t block_bytes = dtype_block_bytes(dtype);
    Buffer& data = buffers[static_cast<size_t>(thread)];
    if (data.data() == nullptr) {
      RIDGE_ASSIGN(data, Buffer::allocate(kPieceBytes));
    }
    RIDGE_TRY(file.read_range(info, piece.first * block_bytes, piece.count * block_bytes, data.data()));
    const BadWeights bad = look_through(dtype, data.data(), piece.count, piece.first * dtype_block(dtype));
    if (bad.count == 0) return {};
    const std::lock_guard lock(mutex);
    BadWeights& all = found[piece.tensor];
    all.count += bad.count;
    if (all.first < 0 || bad.first < all.first) all.first = bad.first, all.value = bad.value;
    return {};
  };
  RIDGE_TRY(for_each_piece(threads, static_cast<int64_t>(pieces.size()), look));
  std::vector<BadWeights> out;
  for (size_t t = 0; t < found.size(); ++t)
    if (found[t].count > 0) out.push_back(found[t]), out.back().tensor = file.tensors()[t].name;
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted(file.path(), ": no memory to look through its weights");
}

Status refuse_bad_weights(const GgufFile& file, const std::vector<BadWeights>& bad) {
  if (bad.empty()) return {};
  int64_t others = -1;
  for (const BadWeights& b : bad) others += b.count;
  return corrupt(
      file.path(), ": tensor ", printable(bad[0].tensor), " weight ", bad[0].first, " is ", bad[0].value,
      others == 0 ? ""
                  : text("; ", others, " more in ", bad.size(), bad.size() == 1 ? " tensor" : " tensors"));
}

}  // namespace ridge
