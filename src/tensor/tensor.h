#pragma once
// Tensor: a view of memory that somebody else owns. Buffer: an owner.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "base/status.h"

namespace ridge {

inline constexpr int kMaxRank = 5;

struct PackedLayout;  // tensor/packed.h

/// Up to kMaxRank dimensions, outermost first.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  int64_t elements() const;
  void push_back(int64_t dim) { dims_[rank_++] = dim; }
  bool operator==(const Shape& other) const;
  std::string str() const;  // "[2, 576]"

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
};

/// A view: pointer, element type, shape, strides in elements. Block-quantized and packed tensors are dense:
/// their rows follow each other without gaps and `strides` is what a dense tensor has. Never owns; copying
/// copies the view.
struct Tensor {
  void* data = nullptr;
  DType dtype = kF32;
  const PackedLayout* layout =
      nullptr;  // null: rows as in the file. Else what an operator's pack() made of them.
  Shape shape;
  std::array<int64_t, kMaxRank> strides{};

  Tensor() = default;
  /// A dense view.
  Tensor(void* data_in, DType dtype_in, Shape shape_in);
  template <class T>
  Tensor(T* elements_in, Shape shape_in)
      : Tensor(const_cast<void*>(static_cast<const void*>(elements_in)), kDTypeOf<std::remove_cv_t<T>>,
               shape_in) {}

  explicit operator bool() const { return data != nullptr; }
  int rank() const { return shape.rank(); }
  int64_t dim(int i) const { return shape[i]; }
  int64_t stride(int i) const { return strides[static_cast<size_t>(i)]; }
  int64_t elements() const { return shape.elements(); }
  bool is_dense() const;
  bool rows_are_dense() const { return rank() == 0 || dim(rank() - 1) <= 1 || stride(rank() - 1) == 1; }
  /// Bytes of the elements themselves (of the packed form, if packed); gaps of strides are not counted.
  int64_t bytes() const;

  /// Typed start of the row with the given leading index (dims after it must be addressed through strides).
  template <class T>
  T* row(int64_t i) const {
    return static_cast<T*>(data) + i * strides[0];
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }

  // For references and tests: one element, any dtype (block-quantized ones are decoded), slow.
  double f64(int64_t i, int64_t j = 0, int64_t k = 0, int64_t l = 0) const;
  int64_t i64(int64_t i, int64_t j = 0, int64_t k = 0) const;
  void set(double v, int64_t i, int64_t j = 0, int64_t k = 0, int64_t l = 0) const;
  int64_t offset(int64_t i, int64_t j, int64_t k, int64_t l) const;

  /// Rows [first, first + count) of the outermost dimension.
  Tensor slice(int64_t first, int64_t count) const;
};

/// Bytes of a dense tensor; an error when a row is not whole blocks, or when the size does not fit 63 bits. A
/// dimension of 0 gives 0 bytes, and is no excuse for others whose product does not fit.
Result<int64_t> tensor_bytes(DType dtype, const Shape& shape);

enum class Pages { kSmall, kHuge };

/// Owner of memory. CPU memory is aligned to 64 bytes (2 MiB and MADV_HUGEPAGE with Pages::kHuge).
class Buffer {
 public:
  Buffer() = default;
  /// `bytes` of uninitialised CPU memory; kResourceExhausted, with the size, when there is none.
  static Result<Buffer> allocate(int64_t bytes, Pages pages = Pages::kSmall);
  /// Takes over memory that `release` gives back.
  Buffer(void* data, int64_t bytes, void (*release)(void*, int64_t))
      : data_(data), bytes_(bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) release_(data_, bytes_);
  }
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }
  void* data() const { return data_; }
  std::byte* begin() const { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  void (*release_)(void*, int64_t) = nullptr;
};

}  // namespace ridge
