#include "formats/gguf_parse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "formats/gguf_cursor.h"

namespace ridge {

namespace {

constexpr uint64_t kShortestEntry = 13;   // length of the key, type, one byte
constexpr uint64_t kShortestTensor = 24;  // length of the name, rank, type, offset

// A name from the file, quoted when a message needs it: making that text for every string would cost more
// than parsing.
struct Quoted {
  std::string_view name;
};
void append_text(std::string& out, const Quoted& quoted) {
  out += printable(quoted.name);
}

class Parser {
 public:
  Parser(const InputFile& file, GgufContents* out) : cursor_(file), out_(*out) {}

  Status parse() {
    RIDGE_TRY(cursor_.reserve());
    RIDGE_TRY(magic_and_version());
    RIDGE_TRY(counts());
    RIDGE_TRY(entries());
    RIDGE_TRY(alignment());
    RIDGE_TRY(tensors());
    out_.header = cursor_.finish();
    return {};
  }

 private:
  template <class... P>
  Status bad(const P&... parts) const {
    return corrupt(cursor_.file().path(), ": ", parts...);
  }

  Status magic_and_version() {
    const uint64_t size = cursor_.file().bytes(), shown = std::min<uint64_t>(size, 512);
    RIDGE_TRY(cursor_.need(shown, "the start"));
    const std::string_view start(reinterpret_cast<const char*>(cursor_.here()), shown);
    if (start.substr(0, 4) != std::string_view("GGUF").substr(0, start.size())) {
      const std::string_view kind = foreign_file_kind(start);
      if (!kind.empty()) return bad("is ", kind, ", not a GGUF file");
      return bad("is not a GGUF file: it starts with ", printable(start.substr(0, 4)), " instead of 'GGUF'");
    }
    RIDGE_TRY(cursor_.need(8, "magic and version"));
    cursor_.skip(4);
    out_.version = cursor_.take<uint32_t>();
    if (out_.version != 0 && (out_.version & 0xffff) == 0)
      return declined(cursor_.file().path(), ": is big-endian (version bytes read as ", out_.version,
                      "): only little-endian GGUF is read here, convert the file");
    if (out_.version != 2 && out_.version != 3)
      return declined(cursor_.file().path(), ": has GGUF version ", out_.version,
                      ", versions 2 and 3 are read here: convert the file");
    return {};
  }

  // A count is believed as far as the file could hold that many of the shortest records, and within the
  // limit.
  Status count(const char* what, uint64_t value, uint64_t shortest, uint64_t limit, uint64_t left) const {
    if (value > left / shortest)
      return bad("truncated at byte ", cursor_.file().bytes(), ": it claims ", value, " ", what,
                 " of at least ", shortest, " bytes, ", left, " bytes are left");
    if (value > limit)
      return resource_exhausted(cursor_.file().path(), ": has ", value, " ", what, ", the limit is ", limit);
    return {};
  }

  Status counts() {
    RIDGE_TRY(cursor_.need(16, "the counts of tensors and metadata records"));
    tensor_count_ = cursor_.take<uint64_t>();
    entry_count_ = cursor_.take<uint64_t>();
    RIDGE_TRY(count("metadata records", entry_count_, kShortestEntry, limits::kGgufMetadataRecords,
                    cursor_.left()));
    return count("tensors", tensor_count_, kShortestTensor, limits::kGgufTensors,
                 cursor_.left() - entry_count_ * kShortestEntry);
  }

  // A key or a tensor's name: it is printed, searched and compared, so it has to be text.
  Status name(const char* kind, uint64_t index, std::string_view* out) {
    RIDGE_TRY(cursor_.need(8, "the length of ", kind, " ", index));
    const uint64_t start = cursor_.at(), length = cursor_.take<uint64_t>();
    if (length > limits::kGgufNameBytes && length <= cursor_.left())
      return resource_exhausted(cursor_.file().path(), ": ", kind, " ", index, " at byte ", start, " has ",
                                length, " bytes, the limit is ", limits::kGgufNameBytes);
    RIDGE_TRY(cursor_.need(length, kind, " ", index));
    *out = cursor_.take_text(length);
    const char* const fault = out->empty()                                ? " is empty"
                              : out->find('\0') != std::string_view::npos ? " holds a zero byte"
                              : !is_utf8(*out)                            ? " is not UTF-8"
                                                                          : nullptr;
    if (fault != nullptr) return bad(kind, " ", index, " at byte ", start, ", ", Quoted{*out}, ",", fault);
    return {};
  }

  Status value_type(std::string_view key, GgufType* out) {
    RIDGE_TRY(cursor_.need(4, "the type of ", Quoted{key}));
    const uint64_t start = cursor_.at();
    const uint32_t id = cursor_.take<uint32_t>();
    if (id >= kGgufTypeCount)
      return bad("key ", Quoted{key}, " has type ", id, " at byte ", start, ": types are 0 to ",
                 kGgufTypeCount - 1);
    *out = static_cast<GgufType>(id);
    return {};
  }

  Status array_head(std::string_view key, GgufType* element, uint64_t* elements) {
    RIDGE_TRY(value_type(key, element));
    RIDGE_TRY(cursor_.need(8, "the count of array ", Quoted{key}));
    *elements = cursor_.take<uint64_t>();
    const uint64_t shortest = gguf_type_bytes(*element);
    if (*elements > cursor_.left() / shortest)
      return bad("truncated at byte ", cursor_.file().bytes(), ": array ", Quoted{key}, " claims ", *elements,
                 " elements of at least ", shortest, " bytes at byte ", cursor_.at(), ", ", cursor_.left(),
                 " bytes are left");
    return {};
  }

  // Checks `elements` values of one type and leaves them behind.
  Status values(std::string_view key, GgufType type, uint64_t elements, uint64_t depth) {
    if (type == GgufType::kString) {
      for (uint64_t i = 0; i < elements; ++i) RIDGE_TRY(string_value(key));
      return {};
    }
    if (type == GgufType::kArray) {
      if (depth > limits::kGgufArrayDepth)
        return resource_exhausted(cursor_.file().path(), ": array ", Quoted{key},
                                  " is nested deeper than the limit of ", limits::kGgufArrayDepth);
      for (uint64_t i = 0; i < elements; ++i) {
        GgufType inner;
        uint64_t inner_elements;
        RIDGE_TRY(array_head(key, &inner, &inner_elements));
        RIDGE_TRY(values(key, inner, inner_elements, depth + 1));
      }
      return {};
    }
    // No overflow: array_head() compared the count with what is left, a scalar's count is 1.
    const uint64_t bytes = elements * gguf_type_bytes(type);
    RIDGE_TRY(cursor_.need(bytes, "the value of ", Quoted{key}));
    if (type == GgufType::kBool) RIDGE_TRY(bools(key, bytes));
    cursor_.skip(bytes);
    return {};
  }

  Status string_value(std::string_view key) {
    RIDGE_TRY(cursor_.need(8, "the length of a string of ", Quoted{key}));
    const uint64_t length = cursor_.take<uint64_t>();
    if (length > limits::kGgufStringBytes && length <= cursor_.left())
      return resource_exhausted(cursor_.file().path(), ": a string of ", Quoted{key}, " at byte ",
                                cursor_.at(), " has ", length, " bytes, the limit is ",
                                limits::kGgufStringBytes);
    RIDGE_TRY(cursor_.need(length, "a string of ", Quoted{key}));
    cursor_.skip(length);
    return {};
  }

  Status bools(std::string_view key, uint64_t bytes) const {
    for (uint64_t i = 0; i < bytes; ++i)
      if (const auto value = static_cast<uint8_t>(cursor_.here()[i]); value > 1)
        return bad("bool ", Quoted{key}, " at byte ", cursor_.at() + i, " is ", value, ", not 0 or 1");
    return {};
  }

  Status entries();
  Status alignment();
  Status tensors();
  Status shape_and_type(GgufTensor* tensor);
  Status place(GgufTensor* tensor, uint64_t relative) const;
  Status order_of_offsets() const;

  GgufCursor cursor_;
  GgufContents& out_;
  uint64_t tensor_count_ = 0, entry_count_ = 0;
};

template <class Record>
std::vector<uint32_t> sorted_by(std::string_view Record::*name, const std::vector<Record>& records) {
  std::vector<uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int compared = (records[a].*name).compare(records[b].*name);
    return compared != 0 ? compared < 0 : a < b;
  });
  return order;
}

Status Parser::entries() {
  out_.entries.reserve(entry_count_);
  for (uint64_t i = 0; i < entry_count_; ++i) {
    GgufEntry entry;
    RIDGE_TRY(name("metadata key", i, &entry.key));
    RIDGE_TRY(value_type(entry.key, &entry.type));
    entry.element = entry.type;
    if (entry.type == GgufType::kArray) RIDGE_TRY(array_head(entry.key, &entry.element, &entry.count));
    entry.value = cursor_.here();
    RIDGE_TRY(values(entry.key, entry.element, entry.count, 2));
    out_.entries.push_back(entry);
  }
  out_.entry_order = sorted_by(&GgufEntry::key, out_.entries);
  for (size_t i = 1; i < out_.entry_order.size(); ++i) {
    const uint32_t first = out_.entry_order[i - 1], second = out_.entry_order[i];
    if (out_.entries[first].key == out_.entries[second].key)
      return bad("key ", Quoted{out_.entries[first].key}, " occurs twice, as metadata records ", first,
                 " and ", second);
  }
  return {};
}

Status Parser::alignment() {
  constexpr std::string_view kKey = "general.alignment";
  for (const GgufEntry& entry : out_.entries) {
    if (entry.key != kKey) continue;
    uint64_t value = 0;
    if (entry.type != GgufType::kU32 && entry.type != GgufType::kU64)
      return bad("key ", kKey, " is ", gguf_entry_type(entry), ", wanted u32");
    std::memcpy(&value, entry.value, gguf_type_bytes(entry.type));
    if (!std::has_single_bit(value) || value < 8 || value > limits::kGgufAlignment)
      return bad(kKey, " is ", value, ", wanted a power of two from 8 to ", limits::kGgufAlignment);
    out_.alignment = static_cast<int64_t>(value);
  }
  return {};
}

// Dims, innermost first in the file, and element type: the shape, and bytes that fit 63 bits.
Status Parser::shape_and_type(GgufTensor* tensor) {
  const Quoted who{tensor->name};
  RIDGE_TRY(cursor_.need(4, "the rank of tensor ", who));
  const auto rank = cursor_.take<uint32_t>();
  if (rank > limits::kGgufTensorRank)
    return bad("tensor ", who, " has ", rank, " dimensions, the limit is ", limits::kGgufTensorRank);
  RIDGE_TRY(cursor_.need(8ull * rank + 12, "dimensions, type and offset of tensor ", who));
  // A dimension of 0 counts as 1 here: the others make strides, which have to fit too.
  int64_t dims[limits::kGgufTensorRank] = {1}, extent = 1;
  bool empty = false;
  for (uint32_t i = 0; i < rank; ++i) {
    const auto dim = cursor_.take<uint64_t>();
    dims[i] = static_cast<int64_t>(dim);
    if (dims[i] < 0 || !checked_mul(extent, std::max<int64_t>(dims[i], 1), &extent))
      return bad("dimension ", i, " of tensor ", who, " is ", dim, ": it has 2^63 elements or more");
    empty |= dims[i] == 0;
  }
  for (uint32_t i = rank; i > 0; --i) tensor->shape.push_back(dims[i - 1]);
  const auto id = cursor_.take<uint32_t>();
  tensor->type = gguf_tensor_type(id);
  if (tensor->type == nullptr)
    return bad("tensor ", who, " has type ", id, " at byte ", cursor_.at() - 4,
               ": the format has no such type");
  if (dims[0] % tensor->type->block != 0)
    return bad("rows of tensor ", who, " have ", dims[0], " elements, which is not whole ",
               tensor->type->name, " blocks of ", tensor->type->block);
  if (!checked_mul(extent / tensor->type->block, tensor->type->block_bytes, &tensor->bytes))
    return bad("tensor ", who, " of ", extent, " elements of ", tensor->type->name,
               " has 2^63 bytes or more");
  if (empty) tensor->bytes = 0;
  return {};
}

// Where the tensor lies, from `relative` bytes after the start of the data on: aligned and inside the file.
Status Parser::place(GgufTensor* tensor, uint64_t relative) const {
  const uint64_t size = cursor_.file().bytes();
  const auto start = static_cast<uint64_t>(out_.data_offset), bytes = static_cast<uint64_t>(tensor->bytes);
  const uint64_t room = size > start ? size - start : 0;
  if (relative % static_cast<uint64_t>(out_.alignment) != 0)
    return bad("tensor ", Quoted{tensor->name}, " has offset ", relative,
               ", which is no multiple of the alignment ", out_.alignment);
  if (relative > room || bytes > room - relative)
    return bad("truncated at byte ", size, ": tensor ", Quoted{tensor->name}, " takes ", bytes,
               " bytes from offset ", relative, " on, the data starts at byte ", start, " and has ", room,
               " bytes");
  tensor->offset = static_cast<int64_t>(start + relative);
  return {};
}

// In the table's order, each tensor starts where the one before ends or later; so none share bytes.
Status Parser::order_of_offsets() const {
  const GgufTensor* before = nullptr;
  for (const GgufTensor& tensor : out_.tensors) {
    if (before != nullptr && tensor.offset < before->offset + before->bytes) {
      for (const GgufTensor* other = out_.tensors.data(); other != &tensor; ++other)
        if (tensor.offset < other->offset + other->bytes && other->offset < tensor.offset + tensor.bytes)
          return bad("tensors ", Quoted{other->name}, " (bytes ", other->offset, " + ", other->bytes,
                     ") and ", Quoted{tensor.name}, " (bytes ", tensor.offset, " + ", tensor.bytes,
                     ") share bytes");
      return bad("tensor ", Quoted{tensor.name}, " at byte ", tensor.offset, " is listed after ",
                 Quoted{before->name}, " at byte ", before->offset,
                 ": the table is not in the order of the data");
    }
    before = &tensor;
  }
  return {};
}

Status Parser::tensors() {
  out_.tensors.reserve(tensor_count_);
  std::vector<uint64_t> relative;
  relative.reserve(tensor_count_);
  for (uint64_t i = 0; i < tensor_count_; ++i) {
    GgufTensor& tensor = out_.tensors.emplace_back();
    RIDGE_TRY(name("tensor name", i, &tensor.name));
    RIDGE_TRY(shape_and_type(&tensor));
    relative.push_back(cursor_.take<uint64_t>());
  }
  out_.tensor_order = sorted_by(&GgufTensor::name, out_.tensors);
  for (size_t i = 1; i < out_.tensor_order.size(); ++i) {
    const uint32_t first = out_.tensor_order[i - 1], second = out_.tensor_order[i];
    if (out_.tensors[first].name == out_.tensors[second].name)
      return bad("tensor ", Quoted{out_.tensors[first].name}, " occurs twice, as tensors ", first, " and ",
                 second);
  }
  out_.data_offset = round_up(static_cast<int64_t>(cursor_.at()), out_.alignment);
  for (size_t i = 0; i < out_.tensors.size(); ++i) RIDGE_TRY(place(&out_.tensors[i], relative[i]));
  RIDGE_TRY(order_of_offsets());
  if (!out_.tensors.empty())
    out_.data_bytes = out_.tensors.back().offset + out_.tensors.back().bytes - out_.data_offset;
  return {};
}

}  // namespace

Status parse_gguf(const InputFile& file, GgufContents* out) {
  return Parser(file, out).parse();
}

}  // namespace ridge
