#include "formats/gguf_writer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/files.h"
#include "base/limits.h"

namespace ridge {

namespace {

constexpr int64_t kChunk = 1 << 20;  // bytes of rows that are filled at once

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_string(std::string& out, std::string_view value) {
  put<uint64_t>(out, value.size());
  out += value;
}
template <class T>
std::string encoded_array(GgufType element, std::span<const T> values) {
  std::string out;
  put(out, element);
  put<uint64_t>(out, values.size());
  if (!values.empty()) out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return out;
}

int64_t row_elements(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

Status no_duplicates(const char* kind, std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return invalid_argument(kind, " ", printable(*twice), " was added twice");
}

}  // namespace

void GgufWriter::add_encoded(std::string_view key, GgufType type, std::string_view value) {
  keys_.emplace_back(key);
  put_string(metadata_, key);
  put(metadata_, type);
  metadata_ += value;
  if (key == "general.alignment" && type == GgufType::kU32) {
    uint32_t alignment;
    std::memcpy(&alignment, value.data(), sizeof alignment);
    alignment_ = alignment;
  }
}

void GgufWriter::add_scalar(std::string_view key, GgufType type, const void* value) {
  add_encoded(key, type, std::string_view(static_cast<const char*>(value), gguf_type_bytes(type)));
}

void GgufWriter::add_string(std::string_view key, std::string_view value) {
  std::string encoded;
  put_string(encoded, value);
  add_encoded(key, GgufType::kString, encoded);
}

void GgufWriter::add_string_array(std::string_view key, std::span<const std::string> values) {
  std::string encoded = encoded_array<std::byte>(GgufType::kString, {});
  const uint64_t count = values.size();
  std::memcpy(encoded.data() + 4, &count, sizeof count);
  for (const std::string& value : values) put_string(encoded, value);
  add_encoded(key, GgufType::kArray, encoded);
}

void GgufWriter::add_f32_array(std::string_view key, std::span<const float> values) {
  add_encoded(key, GgufType::kArray, encoded_array(GgufType::kF32, values));
}

void GgufWriter::add_i32_array(std::string_view key, std::span<const int32_t> values) {
  add_encoded(key, GgufType::kArray, encoded_array(GgufType::kI32, values));
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, const Shape& shape, Rows rows) {
  tensors_.push_back({std::string(name), dtype, shape, std::move(rows)});
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, const Shape& shape, const void* data) {
  const int64_t row_bytes = row_elements(shape) / dtype_block(dtype) * dtype_block_bytes(dtype);
  add_tensor(name, dtype, shape, [data, row_bytes](int64_t first, int64_t count, std::byte* out) {
    std::memcpy(out, static_cast<const std::byte*>(data) + first * row_bytes,
                static_cast<size_t>(count * row_bytes));
    return Status();
  });
}

Status GgufWriter::check() const {
  RIDGE_TRY(no_duplicates("key", {keys_.begin(), keys_.end()}));
  std::vector<std::string_view> names;
  for (const Piece& piece : tensors_) {
    const std::string who = text("tensor ", printable(piece.name));
    names.push_back(piece.name);
    if (!gguf_tensor_type_id(piece.dtype))
      return invalid_argument(who, ": GGUF here has no type ", dtype_name(piece.dtype));
    if (piece.shape.rank() > limits::kGgufTensorRank)
      return invalid_argument(who, " has rank ", piece.shape.rank(), ", the limit is ",
                              limits::kGgufTensorRank);
    RIDGE_TRY(tensor_bytes(piece.dtype, piece.shape).status().within(who));
  }
  if (alignment_ < 8 || alignment_ > limits::kGgufAlignment || (alignment_ & (alignment_ - 1)) != 0)
    return invalid_argument("general.alignment is ", alignment_, ", wanted a power of two from 8 to ",
                            limits::kGgufAlignment);
  return no_duplicates("tensor", std::move(names));
}

Result<std::string> GgufWriter::header(uint32_t version) const {
  std::string out = "GGUF";
  put(out, version);
  put<uint64_t>(out, tensors_.size());
  put<uint64_t>(out, keys_.size());
  out += metadata_;
  int64_t offset = 0;
  for (const Piece& piece : tensors_) {
    put_string(out, piece.name);
    put(out, static_cast<uint32_t>(piece.shape.rank()));
    for (int i = piece.shape.rank() - 1; i >= 0; --i) put(out, piece.shape[i]);
    put(out, *gguf_tensor_type_id(piece.dtype));
    put(out, offset);
    const int64_t bytes = *tensor_bytes(piece.dtype, piece.shape), slack = static_cast<int64_t>(alignment_);
    if (bytes > INT64_MAX - slack || !checked_add(offset, round_up(bytes, slack), &offset))
      return invalid_argument("tensor ", printable(piece.name), " ends beyond 2^63 bytes");
  }
  return out;
}

Status GgufWriter::emit_rows(const Piece& piece, const Sink& sink) {
  const int64_t bytes = *tensor_bytes(piece.dtype, piece.shape);
  const int64_t row_bytes =
      row_elements(piece.shape) / dtype_block(piece.dtype) * dtype_block_bytes(piece.dtype);
  if (bytes == 0) return {};
  const int64_t rows = bytes / row_bytes, at_once = std::clamp<int64_t>(kChunk / row_bytes, 1, rows);
  RIDGE_ASSIGN(const Buffer chunk, Buffer::allocate(at_once * row_bytes));
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t count = std::min(at_once, rows - first);
    if (const Status status = piece.rows(first, count, chunk.begin()); !status.ok())
      return status.within(text("tensor ", printable(piece.name)));
    RIDGE_TRY(sink({reinterpret_cast<const char*>(chunk.begin()), static_cast<size_t>(count * row_bytes)}));
  }
  return {};
}

Status GgufWriter::emit(uint32_t version, const Sink& sink) const {
  RIDGE_TRY(check());
  RIDGE_ASSIGN(const std::string head, header(version));
  const auto alignment = static_cast<int64_t>(alignment_);
  const auto pad = [&](int64_t bytes) {
    return sink(std::string(static_cast<size_t>(round_up(bytes, alignment) - bytes), '\0'));
  };
  RIDGE_TRY(sink(head));
  RIDGE_TRY(pad(static_cast<int64_t>(head.size())));
  for (const Piece& piece : tensors_) {
    RIDGE_TRY(emit_rows(piece, sink));
    RIDGE_TRY(pad(*tensor_bytes(piece.dtype, piece.shape)));
  }
  return {};
}

Status GgufWriter::write(const std::string& path, uint32_t version) const try {
  RIDGE_ASSIGN(OutputFile file, OutputFile::create(path));
  RIDGE_TRY(emit(version, [&](std::string_view bytes) { return file.write(bytes); }));
  return file.commit();
} catch (const std::bad_alloc&) {
  return resource_exhausted(path, ": no memory to write it");
}

Result<std::string> GgufWriter::bytes(uint32_t version) const try {
  std::string out;
  RIDGE_TRY(emit(version, [&](std::string_view part) {
    out += part;
    return Status();
  }));
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for the bytes of a GGUF file");
}

}  // namespace ridge
