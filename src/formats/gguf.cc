#include "formats/gguf.h"

#include <algorithm>
#include <new>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pieces.h"
#include "formats/gguf_parse.h"

namespace ridge {

Result<GgufFile> GgufFile::open(const std::string& path) try {
  RIDGE_ASSIGN(InputFile file, InputFile::open(path));
  return parse(std::move(file));
} catch (const std::bad_alloc&) {
  return resource_exhausted(path, ": no memory for its metadata");
}

Result<GgufFile> GgufFile::open_memory(std::span<const std::byte> bytes, std::string name) try {
  return parse(InputFile::borrow(bytes, std::move(name)));
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for the metadata of a model file");
}

Result<GgufFile> GgufFile::parse(InputFile file) {
  GgufFile out;
  out.file_ = std::move(file);
  RIDGE_TRY(parse_gguf(out.file_, &out.contents_));
  return out;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto& order = contents_.tensor_order;
  const auto at = std::lower_bound(
      order.begin(), order.end(), name,
      [&](uint32_t i, std::string_view wanted) { return contents_.tensors[i].name < wanted; });
  return at != order.end() && contents_.tensors[*at].name == name ? &contents_.tensors[*at] : nullptr;
}

Result<GgufTensor> GgufFile::tensor(std::string_view name) const {
  const GgufTensor* const found = find_tensor(name);
  if (found == nullptr) return not_found(path(), ": has no tensor ", printable(name));
  if (!found->type->dtype)
    return declined(path(), ": ", printable(name), " has type ", found->type->name, ": no kernel for it yet");
  return *found;
}

Status GgufFile::read(const GgufTensor& tensor, void* out) const {
  return read_range(tensor, 0, tensor.bytes, out);
}

Status GgufFile::read_range(const GgufTensor& tensor, int64_t first, int64_t count, void* out) const {
  if (first < 0 || count < 0 || first > tensor.bytes || count > tensor.bytes - first)
    return invalid_argument("bytes ", first, " + ", count, " are outside tensor ", printable(tensor.name),
                            " of ", tensor.bytes, " bytes");
  const Status status =
      file_.read(static_cast<uint64_t>(tensor.offset + first), static_cast<uint64_t>(count), out);
  return status.ok() ? status : status.within(text("tensor ", printable(tensor.name)));
}

Result<Buffer> GgufFile::read_all(int threads) const try {
  if (threads < 1 || threads > limits::kThreads)
    return invalid_argument("threads is ", threads, ", wanted 1 to ", limits::kThreads);
  RIDGE_TRY(check_memory(data_bytes(), text(path(), ": its tensor data")));
  RIDGE_ASSIGN(Buffer data, Buffer::allocate(data_bytes(), Pages::kHuge));
  // Pieces of whole huge pages: two threads never fault the same page.
  constexpr int64_t kPiece = 8 << 20;
  const Status read = for_each_piece(threads, ceil_div(data_bytes(), kPiece), [&](int64_t piece, int) {
    const int64_t first = piece * kPiece;
    return file_.read(static_cast<uint64_t>(data_offset() + first),
                      static_cast<uint64_t>(std::min(kPiece, data_bytes() - first)), data.begin() + first);
  });
  if (!read.ok()) return read.code() == Code::kResourceExhausted ? read.within(path()) : read;
  return data;
} catch (const std::bad_alloc&) {
  return resource_exhausted(path(), ": no memory to read it");
}

Tensor GgufFile::view(const GgufTensor& tensor, const Buffer& data) const {
  return Tensor(data.begin() + (tensor.offset - data_offset()), *tensor.type->dtype, tensor.shape);
}

std::string_view foreign_file_kind(std::string_view first_bytes) {
  const auto starts = [&](std::string_view prefix) { return first_bytes.substr(0, prefix.size()) == prefix; };
  if (starts("version https://git-lfs")) return "a Git LFS pointer (fetch the file itself: git lfs pull)";
  if (starts("PK\x03\x04")) return "a zip archive (a PyTorch checkpoint?)";
  if (starts("\x1f\x8b")) return "a gzip archive";
  if (starts("\x28\xb5\x2f\xfd")) return "a zstd archive";
  if (starts("\x80\x02") || starts("\x80\x04")) return "a Python pickle";
  if (starts("lmgg") || starts("fmgg") || starts("tjgg")) return "a GGML file from before GGUF (convert it)";
  if (first_bytes.size() > 8 && first_bytes[8] == '{') return "a safetensors file";
  const size_t letter = first_bytes.find_first_not_of(" \t\r\n");
  if (letter == std::string_view::npos) return "";
  const std::string_view rest = first_bytes.substr(letter);
  const auto starts_tag = [&](std::string_view tag) {  // `tag` in lower case
    return rest.size() >= tag.size() &&
           std::equal(tag.begin(), tag.end(), rest.begin(), [](char wanted, char found) {
             return wanted == (found >= 'A' && found <= 'Z' ? static_cast<char>(found + 32) : found);
           });
  };
  if (starts_tag("<!doctype html") || starts_tag("<html")) return "an HTML page (a download that failed?)";
  if (starts_tag("<?xml")) return "an XML page (a download that failed?)";
  if (rest[0] == '{') return "JSON text (a download that failed?)";
  return "";
}

}  // namespace ridge
