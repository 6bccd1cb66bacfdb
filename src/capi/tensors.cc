#include "capi/tensors.h"

#include "base/checked.h"

namespace ridge::capi {

static_assert(static_cast<int>(kBool) == RIDGE_BOOL && static_cast<int>(kI64) == RIDGE_I64);
static_assert(static_cast<int>(kQ8_0) == RIDGE_Q8_0 && static_cast<int>(kQ6_K) == RIDGE_Q6_K);
static_assert(kDTypeCount == RIDGE_Q6_K + 1, "a new dtype needs its number in ridge/operators.h");

Result<DType> dtype_of(int32_t dtype) {
  if (dtype >= 0 && dtype < kDTypeCount) return static_cast<DType>(dtype);
  return invalid_argument("dtype is ", dtype, ", needs a ridge_dtype, 0 to ", kDTypeCount - 1);
}

Status check_aligned(const void* data, const char* name) {
  constexpr uintptr_t kAlignment = 64;
  const uintptr_t off = reinterpret_cast<uintptr_t>(data) % kAlignment;
  if (off == 0) return {};
  return invalid_argument(name, " is ", off, " bytes behind a multiple of 64, needs to be one");
}

Status check_element_aligned(const void* data, DType dtype, const char* name) {
  // Blocks hold f16 scales.
  const int64_t element = is_block_quantized(dtype) ? 2 : dtype_block_bytes(dtype);
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(element) == 0) return {};
  return invalid_argument(name, ": data of ", dtype_name(dtype), " is not aligned to ", element, " bytes");
}

namespace {

Result<DType> plain_dtype(const ridge_tensor& t, const char* name) {
  const auto is = [&](int code, int bits) {
    return t.dtype.code == code && t.dtype.bits == bits && t.dtype.lanes == 1;
  };
  if (is(RIDGE_TENSOR_FLOAT, 32)) return kF32;
  if (is(RIDGE_TENSOR_FLOAT, 16)) return kF16;
  if (is(RIDGE_TENSOR_BFLOAT, 16)) return kBF16;
  if (is(RIDGE_TENSOR_INT, 8)) return kI8;
  if (is(RIDGE_TENSOR_UINT, 8)) return kU8;
  if (is(RIDGE_TENSOR_INT, 32)) return kI32;
  if (is(RIDGE_TENSOR_INT, 64)) return kI64;
  if (is(RIDGE_TENSOR_BOOL, 8)) return kBool;
  return invalid_argument(
      name, ": dtype code ", t.dtype.code, ", ", t.dtype.bits, " bits, ", t.dtype.lanes,
      " lanes: needs float 16 or 32, bfloat 16, int 8, 32 or 64, uint 8 or bool 8, of 1 lane");
}

/// Strides as the caller's, or dense; the last element's offset in bytes has to fit.
Status set_strides(const ridge_tensor& from, const char* name, Tensor* t) {
  if (from.strides == nullptr || t->elements() == 0) return {};
  int64_t last = 0;
  for (int i = 0; i < t->rank(); ++i) {
    const int64_t stride = from.strides[i];
    int64_t reach = 0;
    if (stride < 0) return invalid_argument(name, ": stride ", i, " is ", stride, ", needs 0 or more");
    if (!checked_mul(t->dim(i) - 1, stride, &reach) || !checked_add(last, reach, &last))
      return invalid_argument(name, ": strides reach beyond 2^63 elements");
    t->strides[static_cast<size_t>(i)] = stride;
  }
  if (!checked_mul(last, dtype_block_bytes(t->dtype), &last))
    return invalid_argument(name, ": strides reach beyond 2^63 bytes");
  return {};
}

}  // namespace

Result<Tensor> tensor_of(const ridge_tensor& from, const char* name) {
  if (from.device.device_type != RIDGE_TENSOR_CPU)
    return declined(name, ": device_type is ", static_cast<int>(from.device.device_type),
                    ", this library takes memory of CPUs, 1");
  if (from.device.device_id != 0)
    return declined(name, ": device_id is ", from.device.device_id, ", the CPU is 0");
  if (from.ndim < 1 || from.ndim > kMaxRank)
    return invalid_argument(name, ": ndim is ", from.ndim, ", needs 1 to ", kMaxRank);
  if (from.shape == nullptr) return invalid_argument(name, ": shape is NULL");
  Shape shape;
  for (int i = 0; i < from.ndim; ++i) {
    if (from.shape[i] < 0) return invalid_argument(name, ": dim ", i, " is ", from.shape[i]);
    shape.push_back(from.shape[i]);
  }
  RIDGE_ASSIGN(const DType dtype, plain_dtype(from, name));
  const auto bytes = tensor_bytes(dtype, shape);
  if (!bytes.ok()) return bytes.status().within(name);
  if (from.data == nullptr && *bytes > 0)
    return invalid_argument(name, ": data is NULL with shape ", shape.str());
  const uintptr_t behind = UINTPTR_MAX - reinterpret_cast<uintptr_t>(from.data);
  if (from.byte_offset > behind || static_cast<uint64_t>(*bytes) > behind - from.byte_offset)
    return invalid_argument(name, ": byte_offset is ", from.byte_offset,
                            ", which with the elements reaches beyond the end of memory");
  Tensor t(from.data == nullptr ? nullptr : static_cast<std::byte*>(from.data) + from.byte_offset, dtype,
           shape);
  if (*bytes > 0) RIDGE_TRY(check_element_aligned(t.data, dtype, name));
  RIDGE_TRY(set_strides(from, name, &t));
  return t;
}

Result<Tensor> blocks_of(const ridge_tensor& from, DType dtype, const char* name) {
  RIDGE_ASSIGN(const Tensor bytes, tensor_of(from, name));
  if (!is_block_quantized(dtype))
    return invalid_argument(name, ": dtype ", dtype_name(dtype),
                            " is not block-quantized: pass it by ridge_call_set_operand");
  if (bytes.dtype != kU8 || bytes.rank() != 2 || !bytes.is_dense())
    return invalid_argument(name, ": blocks are ", dtype_name(bytes.dtype), " ", bytes.shape.str(),
                            ", needs dense u8 [rows, bytes of a row]");
  RIDGE_TRY(check_element_aligned(bytes.data, dtype, name));
  const int64_t block = dtype_block(dtype), block_bytes = dtype_block_bytes(dtype);
  if (bytes.dim(1) % block_bytes != 0)
    return invalid_argument(name, ": a row has ", bytes.dim(1), " bytes, needs whole ", dtype_name(dtype),
                            " blocks of ", block_bytes);
  const Shape shape = {bytes.dim(0), bytes.dim(1) / block_bytes * block};
  const auto size = tensor_bytes(dtype, shape);
  if (!size.ok()) return size.status().within(name);
  return Tensor(bytes.data, dtype, shape);
}

}  // namespace ridge::capi

using namespace ridge;

const char* ridge_dtype_name(int32_t dtype) {
  const auto known = capi::dtype_of(dtype);
  return known.ok() ? dtype_name(*known) : nullptr;
}

ridge_status ridge_dtype_block(int32_t dtype, int64_t* elements, int64_t* bytes) {
  return capi::guarded([&]() -> capi::Outcome {
    RIDGE_TRY(capi::needed(elements, "elements"));
    RIDGE_TRY(capi::needed(bytes, "bytes"));
    RIDGE_ASSIGN(const DType known, capi::dtype_of(dtype));
    *elements = dtype_block(known), *bytes = dtype_block_bytes(known);
    return {};
  });
}
