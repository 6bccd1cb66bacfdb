#include "models/weights.h"

#include <algorithm>

#include "base/checked.h"
#include "base/pieces.h"
#include "ops/any_operator.h"
#include "tensor/blocks.h"

namespace ridge {

namespace {
// Rows are read and packed in pieces of about this size, so that loading needs little more than the packed
// weights.
constexpr int64_t kPieceBytes = 4 << 20;
constexpr int kLoadingThreads = 8;
// Tensors below this size share slabs of so many bytes.
constexpr int64_t kSlabBytes = 32 << 20;
constexpr int64_t kAlignment = 64;
}  // namespace

Result<std::byte*> WeightStore::place(int64_t bytes) {
  if (bytes > kSlabBytes / 4) {
    RIDGE_ASSIGN(Buffer own, device_->allocate(bytes));
    memory_.push_back(std::move(own));
    return memory_.back().begin();
  }
  const int64_t padded = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  if (padded > slab_left_) {
    RIDGE_ASSIGN(Buffer slab, device_->allocate(kSlabBytes));
    slab_ = slab.begin(), slab_left_ = kSlabBytes;
    memory_.push_back(std::move(slab));
  }
  std::byte* const at = slab_;
  slab_ += padded, slab_left_ -= padded;
  return at;
}

Result<GgufTensor> WeightStore::checked(const std::string& name, const Shape& wanted) const {
  RIDGE_ASSIGN(GgufTensor t, file_->tensor(name));
  if (!(t.shape == wanted))
    return corrupt(file_->path(), ": tensor ", name, " has shape ", t.shape.str(),
                   ", the configuration wants ", wanted.str());
  return t;
}

Status WeightStore::fill(const GgufTensor& info, const PackedLayout* layout, std::byte* to) const {
  const AnyOperator& linear = *find_operator("linear");
  const int64_t rows = info.shape[0], row_bytes = info.bytes / std::max<int64_t>(rows, 1);
  const int64_t step =
      std::max<int64_t>(1, round_up(std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(row_bytes, 1)),
                                    linear.pack_granularity()));
  // Each thread has a buffer of its own, hence the bound on their number.
  const int threads = std::min(kLoadingThreads, device_->host_threads());
  std::vector<Buffer> buffers(static_cast<size_t>(threads));
  return for_each_piece(threads, ceil_div(rows, step), [&](int64_t piece, int thread) -> Status {
    const int64_t first = piece * step, count = std::min(step, rows - first);
    Buffer& read = buffers[static_cast<size_t>(thread)];
    if (read.data() == nullptr) {
      RIDGE_ASSIGN(read, Buffer::allocate(std::min(step, rows) * row_bytes, Pages::kHuge));
    }
    RIDGE_TRY(file_->read_range(info, first * row_bytes, count * row_bytes, read.data()));
    if (layout == nullptr) return device_->upload(to + first * row_bytes, read.data(), count * row_bytes);
    // pack() counts rows of the whole matrix: a view whose row `first` is the piece's first.
    const Tensor view(read.begin() - first * row_bytes, *info.type->dtype, info.shape);
    linear.pack_rows(view, *layout, to, first, first + count);
    return {};
  });
}

Result<Tensor> WeightStore::matrix(const std::string& name, int64_t rows, int64_t columns) {
  RIDGE_ASSIGN(const GgufTensor info, checked(name, {rows, columns}));
  const DType dtype = *info.type->dtype;
  const PackedLayout* layout = find_operator("linear")->packed_layout(device_->target(), dtype, info.shape);
  RIDGE_ASSIGN(std::byte* const memory, place(layout ? layout->bytes(rows, columns) : info.bytes));
  if (layout == nullptr || device_->target().backend == "cpu") {
    RIDGE_TRY(fill(info, layout, memory));
  } else {
    RIDGE_ASSIGN(Buffer packed, Buffer::allocate(layout->bytes(rows, columns), Pages::kHuge));
    RIDGE_TRY(fill(info, layout, packed.begin()));
    RIDGE_TRY(device_->upload(memory, packed.data(), packed.bytes()));
  }
  Tensor t(memory, dtype, info.shape);
  t.layout = layout;
  loaded_.push_back({name, t, info.bytes});
  return t;
}

Result<Tensor> WeightStore::vector(const std::string& name, int64_t elements) {
  RIDGE_ASSIGN(const GgufTensor info, checked(name, {elements}));
  RIDGE_ASSIGN(Buffer raw, Buffer::allocate(info.bytes));
  RIDGE_TRY(file_->read(info, raw.data()));
  const Tensor source(raw.data(), *info.type->dtype, info.shape);
  std::vector<float> values(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i) values[static_cast<size_t>(i)] = static_cast<float>(source.f64(i));
  RIDGE_ASSIGN(std::byte* const memory, place(elements * 4));
  RIDGE_TRY(device_->upload(memory, values.data(), elements * 4));
  Tensor t(memory, kF32, {elements});
  loaded_.push_back({name, t, info.bytes});
  return t;
}

int64_t WeightStore::bytes() const {
  int64_t sum = 0;
  for (const auto& t : loaded_) sum += t.tensor.bytes();
  return sum;
}

}  // namespace ridge
