#include "tensor/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/checked.h"
#include "tensor/blocks.h"
#include "tensor/packed.h"

namespace ridge {

Shape::Shape(std::initializer_list<int64_t> dims) {
  for (const int64_t d : dims) push_back(d);
}
int64_t Shape::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= dims_[static_cast<size_t>(i)];
  return n;
}
bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i)
    if ((*this)[i] != other[i]) return false;
  return true;
}
std::string Shape::str() const {
  std::string out = "[";
  for (int i = 0; i < rank_; ++i) out += text(i > 0 ? ", " : "", (*this)[i]);
  return out + "]";
}

Tensor::Tensor(void* data_in, DType dtype_in, Shape shape_in)
    : data(data_in), dtype(dtype_in), shape(shape_in) {
  int64_t stride = 1;
  for (int i = rank() - 1; i >= 0; --i) strides[static_cast<size_t>(i)] = stride, stride *= dim(i);
}

bool Tensor::is_dense() const {
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (dim(i) != 1 && stride(i) != expected) return false;
    expected *= dim(i);
  }
  return true;
}

int64_t Tensor::bytes() const {
  if (layout != nullptr) return layout->bytes(dim(0), dim(1));
  return elements() / dtype_block(dtype) * dtype_block_bytes(dtype);
}

int64_t Tensor::offset(int64_t i, int64_t j, int64_t k, int64_t l) const {
  int64_t at = rank() > 0 ? i * strides[0] : 0;
  if (rank() > 1) at += j * strides[1];
  if (rank() > 2) at += k * strides[2];
  if (rank() > 3) at += l * strides[3];
  return at;
}

/// Element `at` of blocks. Apart from f64(): sanitizers prepare a frame of arrays at every call.
static double decoded(DType dtype, const void* data, int64_t at) {
  double block[256];
  decode_block(dtype, data, at / dtype_block(dtype), block);
  return block[at % dtype_block(dtype)];
}

double Tensor::f64(int64_t i, int64_t j, int64_t k, int64_t l) const {
  const int64_t at = offset(i, j, k, l);
  switch (dtype) {
    case kF32:
      return as<float>()[at];
    case kF16:
      return to_f32(as<f16>()[at]);
    case kBF16:
      return to_f32(as<bf16>()[at]);
    case kI8:
      return as<int8_t>()[at];
    case kU8:
    case kBool:
      return as<uint8_t>()[at];
    case kI32:
      return as<int32_t>()[at];
    case kI64:
      return static_cast<double>(as<int64_t>()[at]);
    default:
      return decoded(dtype, data, at);
  }
}

int64_t Tensor::i64(int64_t i, int64_t j, int64_t k) const {
  const int64_t at = offset(i, j, k, 0);
  if (dtype == kI64) return as<int64_t>()[at];
  if (dtype == kI32) return as<int32_t>()[at];
  return static_cast<int64_t>(f64(i, j, k));
}

void Tensor::set(double v, int64_t i, int64_t j, int64_t k, int64_t l) const {
  const int64_t at = offset(i, j, k, l);
  switch (dtype) {
    case kF32:
      as<float>()[at] = static_cast<float>(v);
      break;
    case kF16:
      as<f16>()[at] = to_f16(static_cast<float>(v));
      break;
    case kBF16:
      as<bf16>()[at] = to_bf16(static_cast<float>(v));
      break;
    case kI8:
      as<int8_t>()[at] = static_cast<int8_t>(v);
      break;
    case kU8:
    case kBool:
      as<uint8_t>()[at] = static_cast<uint8_t>(v);
      break;
    case kI32:
      as<int32_t>()[at] = static_cast<int32_t>(v);
      break;
    case kI64:
      as<int64_t>()[at] = static_cast<int64_t>(v);
      break;
    default:
      break;
  }
}

Tensor Tensor::slice(int64_t first, int64_t count) const {
  Tensor out = *this;
  out.data = as<std::byte>() + first * strides[0] / dtype_block(dtype) * dtype_block_bytes(dtype);
  out.shape[0] = count;
  return out;
}

Result<int64_t> tensor_bytes(DType dtype, const Shape& shape) {
  // A dimension of 0 does not make the others harmless: strides are their products.
  int64_t extent = 1, bytes = 0;
  bool empty = false;
  for (int i = 0; i < shape.rank(); ++i) {
    empty = empty || shape[i] == 0;
    if (shape[i] < 0 || !checked_mul(extent, std::max<int64_t>(shape[i], 1), &extent))
      return invalid_argument("shape ", shape.str(),
                              " has a negative dimension, or dimensions whose product exceeds 2^63");
  }
  const int64_t block = dtype_block(dtype);
  if (shape.rank() > 0 && shape[shape.rank() - 1] % block != 0)
    return invalid_argument("rows of ", shape[shape.rank() - 1], " elements are not whole ",
                            dtype_name(dtype), " blocks of ", block);
  if (!checked_mul(extent / block, dtype_block_bytes(dtype), &bytes))
    return invalid_argument("shape ", shape.str(), " of ", dtype_name(dtype), " exceeds 2^63 bytes");
  return empty ? 0 : bytes;
}

Result<Buffer> Buffer::allocate(int64_t bytes, Pages pages) {
  constexpr int64_t kHugePage = 2 << 20;
  const int64_t alignment = pages == Pages::kHuge ? kHugePage : 64;
  if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() - alignment)
    return invalid_argument("cannot allocate ", bytes, " bytes");
  const int64_t padded = round_up(bytes > 0 ? bytes : 1, alignment);
  void* data = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(padded));
  if (data == nullptr)
    return resource_exhausted("no memory for ", bytes, " bytes (", bytes_text(double(bytes)), ")");
  if (pages == Pages::kHuge) madvise(data, static_cast<size_t>(padded), MADV_HUGEPAGE);
  return Buffer(data, bytes, [](void* p, int64_t) { std::free(p); });
}

}  // namespace ridge
