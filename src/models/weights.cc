#include "models/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/pieces.h"
#include "base/random.h"
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
  if (values_ == Values::kNone) return nullptr;
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

Result<GgufTensor> WeightStore::checked(const std::string& name, const Shape& wanted) {
  RIDGE_ASSIGN(GgufTensor t, file_->tensor(name));
  taken_.insert(name);
  if (!(t.shape == wanted))
    return corrupt(file_->path(), ": tensor ", name, " has shape ", t.shape.str(),
                   ", the configuration wants ", wanted.str());
  return t;
}

Status WeightStore::check_all_taken() const {
  const GgufTensor* first = nullptr;
  int64_t others = -1;
  for (const GgufTensor& t : file_->tensors()) {
    if (taken_.count(t.name) > 0) continue;
    if (first == nullptr) first = &t;
    ++others;
  }
  if (first == nullptr) return {};
  return declined(file_->path(), ": tensor ", printable(first->name), " ", first->shape.str(),
                  " has no part in this architecture",
                  others > 0 ? text(", nor have ", others, others == 1 ? " other" : " others") : "",
                  ": without it the answers would be wrong");
}

namespace {
const AnyOperator& linear_operator() {
  return *find_operator("linear");
}
int64_t stored_bytes(const GgufTensor& info, const PackedLayout* layout) {
  return layout != nullptr ? layout->bytes(info.shape[0], info.shape[1]) : info.bytes;
}
}  // namespace

Status WeightStore::fill(const GgufTensor& info, const PackedLayout* layout, std::byte* to) const {
  const AnyOperator& linear = linear_operator();
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
    RIDGE_TRY(read_rows(info, first, count, read.begin()));
    if (layout == nullptr) return device_->upload(to + first * row_bytes, read.data(), count * row_bytes);
    // pack() counts rows of the whole matrix: a view whose row `first` is the piece's first.
    const Tensor view(read.begin() - first * row_bytes, *info.type->dtype, info.shape);
    linear.pack_rows(view, *layout, to, first, first + count);
    return {};
  });
}

Result<Tensor> WeightStore::matrix(const std::string& name, int64_t rows, int64_t columns) {
  RIDGE_ASSIGN(const GgufTensor info, checked(name, {rows, columns}));
  const PackedLayout* layout =
      linear_operator().packed_layout(device_->target(), *info.type->dtype, info.shape);
  RIDGE_ASSIGN(std::byte* const memory, place(stored_bytes(info, layout)));
  return matrix_at(info, layout, memory);
}

Result<MatrixGroup> WeightStore::matrices(const std::vector<std::pair<std::string, int64_t>>& wanted,
                                          int64_t columns) {
  MatrixGroup group;
  std::vector<GgufTensor> infos;
  bool one_type = !device_->host_visible();
  int64_t rows = 0, bytes = 0;
  for (const auto& [name, part] : wanted) {
    RIDGE_ASSIGN(const GgufTensor info, checked(name, {part, columns}));
    infos.push_back(info);
    rows += part;
    // Packed forms hold whole tiles of rows.
    one_type &=
        *info.type->dtype == *infos[0].type->dtype && part % linear_operator().pack_granularity() == 0;
  }
  if (!one_type) {
    for (const auto& [name, part] : wanted) {
      RIDGE_ASSIGN(const Tensor t, matrix(name, part, columns));
      group.parts.push_back(t);
    }
    return group;
  }
  const DType dtype = *infos[0].type->dtype;
  const PackedLayout* layout = linear_operator().packed_layout(device_->target(), dtype, {rows, columns});
  for (const GgufTensor& info : infos) bytes += stored_bytes(info, layout);
  RIDGE_ASSIGN(std::byte * memory, place(bytes));
  group.whole = Tensor(memory, dtype, {rows, columns});
  group.whole.layout = layout;
  for (const GgufTensor& info : infos) {
    RIDGE_ASSIGN(const Tensor t, matrix_at(info, layout, memory));
    group.parts.push_back(t);
    if (memory != nullptr) memory += stored_bytes(info, layout);
  }
  return group;
}

/// Random rows repeat after a piece: what a kernel costs does not depend on them.
Status WeightStore::read_rows(const GgufTensor& info, int64_t first, int64_t count, std::byte* to) const {
  const int64_t row_bytes = info.bytes / info.shape[0], columns = info.shape[1];
  if (values_ == Values::kFile) return file_->read_range(info, first * row_bytes, count * row_bytes, to);
  const DType dtype = *info.type->dtype;
  constexpr int64_t kRandomRows = 64;
  Random random(static_cast<uint64_t>(columns));
  const float spread = std::sqrt(3.0f / static_cast<float>(columns));  // keeps the size of what it multiplies
  std::vector<float> values(static_cast<size_t>(columns));
  for (int64_t r = 0; r < count; ++r) {
    std::byte* const row = to + r * row_bytes;
    if (r >= kRandomRows) {
      std::memcpy(row, row - kRandomRows * row_bytes, static_cast<size_t>(row_bytes));
      continue;
    }
    for (float& v : values) v = random.uniform(-spread, spread);
    if (is_block_quantized(dtype)) {
      encode_row(dtype, values.data(), columns, row);
      continue;
    }
    const Tensor t(row, dtype, {columns});
    for (int64_t c = 0; c < columns; ++c) t.set(values[static_cast<size_t>(c)], c);
  }
  return {};
}

Result<Tensor> WeightStore::matrix_at(const GgufTensor& info, const PackedLayout* layout, std::byte* memory) {
  const int64_t rows = info.shape[0], columns = info.shape[1];
  if (values_ == Values::kNone) {
    // Name, type and shape were what there is to check.
  } else if (layout == nullptr || device_->host_visible()) {
    RIDGE_TRY(fill(info, layout, memory));
  } else {
    RIDGE_ASSIGN(Buffer packed, Buffer::allocate(layout->bytes(rows, columns), Pages::kHuge));
    RIDGE_TRY(fill(info, layout, packed.begin()));
    RIDGE_TRY(device_->upload(memory, packed.data(), packed.bytes()));
  }
  Tensor t(memory, *info.type->dtype, info.shape);
  t.layout = layout;
  loaded_.push_back({std::string(info.name), t, info.bytes});
  return t;
}

Result<std::vector<float>> WeightStore::values(const std::string& name, int64_t elements) {
  RIDGE_ASSIGN(const GgufTensor info, checked(name, {elements}));
  if (values_ == Values::kRandom) return std::vector<float>(static_cast<size_t>(elements), 1.0f);
  RIDGE_ASSIGN(Buffer raw, Buffer::allocate(info.bytes));
  RIDGE_TRY(file_->read(info, raw.data()));
  const Tensor source(raw.data(), *info.type->dtype, info.shape);
  std::vector<float> values(static_cast<size_t>(elements));
  for (int64_t i = 0; i < elements; ++i) values[static_cast<size_t>(i)] = static_cast<float>(source.f64(i));
  return values;
}

Result<Tensor> WeightStore::constant(const std::string& name, const std::vector<float>& values) {
  const auto elements = static_cast<int64_t>(values.size());
  RIDGE_ASSIGN(std::byte* const memory, place(elements * 4));
  if (memory != nullptr) RIDGE_TRY(device_->upload(memory, values.data(), elements * 4).within(name));
  return Tensor(memory, kF32, {elements});
}

Result<Tensor> WeightStore::vector(const std::string& name, int64_t elements) {
  RIDGE_ASSIGN(const GgufTensor info, checked(name, {elements}));
  RIDGE_ASSIGN(const std::vector<float> decoded, values(name, elements));
  RIDGE_ASSIGN(const Tensor t, constant(name, decoded));
  loaded_.push_back({name, t, info.bytes});
  return t;
}

int64_t WeightStore::held_bytes() const {
  int64_t sum = 0;
  for (const Buffer& b : memory_) sum += b.bytes();
  return sum;
}

int64_t WeightStore::bytes() const {
  int64_t sum = 0;
  for (const auto& t : loaded_) sum += t.tensor.bytes();
  return sum;
}

}  // namespace ridge
