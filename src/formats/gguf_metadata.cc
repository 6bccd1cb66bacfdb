// Metadata of a GGUF file: typed getters, and values as text.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "formats/gguf.h"
#include "formats/gguf_values.h"

namespace ridge {

namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Calls use(integer) with the value at `at`, in its own type.
template <class Use>
void with_integer(GgufType type, const std::byte* at, Use use) {
  switch (type) {
    case GgufType::kU8:
      use(load<uint8_t>(at));
      break;
    case GgufType::kI8:
      use(load<int8_t>(at));
      break;
    case GgufType::kU16:
      use(load<uint16_t>(at));
      break;
    case GgufType::kI16:
      use(load<int16_t>(at));
      break;
    case GgufType::kU32:
      use(load<uint32_t>(at));
      break;
    case GgufType::kI32:
      use(load<int32_t>(at));
      break;
    case GgufType::kU64:
      use(load<uint64_t>(at));
      break;
    case GgufType::kI64:
      use(load<int64_t>(at));
      break;
    default:
      break;
  }
}

// Takes the string at *at and moves past it.
std::string_view take_string(const std::byte** at) {
  const auto length = load<uint64_t>(*at);
  const std::string_view out(reinterpret_cast<const char*>(*at + 8), length);
  *at += 8 + length;
  return out;
}

void append_value(std::string& out, GgufType type, const std::byte** at, size_t limit) {
  if (type == GgufType::kString) {
    out += printable(take_string(at), limit);
    return;
  }
  if (type == GgufType::kArray) {
    // Only nested arrays come here, and of them only the outer one is listed.
    out += "an array";
    return;
  }
  if (type == GgufType::kF32) append_text(out, load<float>(*at));
  if (type == GgufType::kF64) append_text(out, load<double>(*at));
  if (type == GgufType::kBool) append_text(out, load<uint8_t>(*at) != 0);
  if (is_integer(type)) with_integer(type, *at, [&](auto value) { append_text(out, value); });
  *at += gguf_type_bytes(type);
}

}  // namespace

std::string gguf_entry_type(const GgufEntry& entry) {
  if (entry.type != GgufType::kArray) return gguf_type_name(entry.type);
  return text("array of ", gguf_type_name(entry.element));
}

std::string gguf_entry_text(const GgufEntry& entry, size_t limit) {
  constexpr uint64_t kShown = 8;
  std::string out;
  const std::byte* at = entry.value;
  if (entry.type != GgufType::kArray) {
    append_value(out, entry.type, &at, limit);
    return out;
  }
  const uint64_t shown = entry.element == GgufType::kArray ? 0 : std::min(entry.count, kShown);
  out = text("[", entry.count, " of ", gguf_type_name(entry.element), shown > 0 ? ": " : "");
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) out += ", ";
    append_value(out, entry.element, &at, limit);
  }
  return out + (shown < entry.count && shown > 0 ? ", …]" : "]");
}

std::vector<GgufValue> gguf_entry_values(const GgufEntry& entry, uint64_t most) {
  std::vector<GgufValue> out;
  if (entry.element == GgufType::kArray) return out;
  const uint64_t count = entry.type == GgufType::kArray ? std::min(entry.count, most) : 1;
  const std::byte* at = entry.value;
  for (uint64_t i = 0; i < count; ++i) {
    if (entry.element == GgufType::kString) {
      out.emplace_back(take_string(&at));
      continue;
    }
    if (entry.element == GgufType::kF32) out.emplace_back(load<float>(at));
    if (entry.element == GgufType::kF64) out.emplace_back(load<double>(at));
    if (entry.element == GgufType::kBool) out.emplace_back(load<uint8_t>(at) != 0);
    if (is_integer(entry.element))
      with_integer(entry.element, at, [&](auto value) {
        if constexpr (std::is_signed_v<decltype(value)>)
          out.emplace_back(static_cast<int64_t>(value));
        else
          out.emplace_back(static_cast<uint64_t>(value));
      });
    at += gguf_type_bytes(entry.element);
  }
  return out;
}

const GgufEntry* GgufFile::entry(std::string_view key) const {
  const auto& order = contents_.entry_order;
  const auto at = std::lower_bound(order.begin(), order.end(), key, [&](uint32_t i, std::string_view wanted) {
    return contents_.entries[i].key < wanted;
  });
  return at != order.end() && contents_.entries[*at].key == key ? &contents_.entries[*at] : nullptr;
}

Status GgufFile::wrong_type(const GgufEntry& entry, std::string_view wanted) const {
  return corrupt(path(), ": key ", printable(entry.key), " is ", gguf_entry_type(entry), ", wanted ", wanted);
}

Status GgufFile::missing(std::string_view key, std::string_view wanted) const {
  return not_found(path(), ": has no key ", printable(key), ", wanted ", wanted);
}

template <class T>
Result<T> GgufFile::required(Result<std::optional<T>> found, std::string_view key, const char* wanted) const {
  RIDGE_TRY(found.status());
  if (!found->has_value()) return missing(key, wanted);
  return **found;
}

template <class T>
Result<std::optional<T>> GgufFile::find_integer(std::string_view key, const char* wanted) const {
  const GgufEntry* const found = entry(key);
  if (found == nullptr) return std::optional<T>();
  if (!is_integer(found->type)) return wrong_type(*found, wanted);
  Status status;
  T out = 0;
  with_integer(found->type, found->value, [&](auto value) {
    if (std::in_range<T>(value))
      out = static_cast<T>(value);
    else
      status = corrupt(path(), ": key ", printable(key), " is ", value, ", wanted ", wanted);
  });
  RIDGE_TRY(status);
  return std::optional<T>(out);
}

namespace {
constexpr const char* kUnsigned = "an unsigned integer";
constexpr const char* kSigned = "an integer below 2^63";
constexpr const char* kFinite = "a finite f32";
}  // namespace

Result<std::optional<uint64_t>> GgufFile::find_u64(std::string_view key) const {
  return find_integer<uint64_t>(key, kUnsigned);
}
Result<std::optional<int64_t>> GgufFile::find_i64(std::string_view key) const {
  return find_integer<int64_t>(key, kSigned);
}
Result<uint64_t> GgufFile::get_u64(std::string_view key) const {
  return required(find_u64(key), key, kUnsigned);
}
Result<int64_t> GgufFile::get_i64(std::string_view key) const {
  return required(find_i64(key), key, kSigned);
}

Result<std::optional<float>> GgufFile::find_f32(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (found == nullptr) return std::optional<float>();
  float value;
  if (found->type == GgufType::kF32)
    value = load<float>(found->value);
  else if (found->type == GgufType::kF64)
    value = static_cast<float>(load<double>(found->value));
  else
    return wrong_type(*found, kFinite);
  if (!std::isfinite(value))
    return corrupt(path(), ": key ", printable(key), " is ", gguf_entry_text(*found), ", wanted ", kFinite);
  return std::optional<float>(value);
}
Result<float> GgufFile::get_f32(std::string_view key) const {
  return required(find_f32(key), key, kFinite);
}

Result<std::optional<bool>> GgufFile::find_bool(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (found == nullptr) return std::optional<bool>();
  if (found->type != GgufType::kBool) return wrong_type(*found, "bool");
  return std::optional<bool>(load<uint8_t>(found->value) != 0);
}
Result<bool> GgufFile::get_bool(std::string_view key) const {
  return required(find_bool(key), key, "bool");
}

Result<std::optional<std::string_view>> GgufFile::find_string(std::string_view key) const {
  const GgufEntry* const found = entry(key);
  if (found == nullptr) return std::optional<std::string_view>();
  if (found->type != GgufType::kString) return wrong_type(*found, "string");
  const std::byte* at = found->value;
  return std::optional<std::string_view>(take_string(&at));
}
Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  return required(find_string(key), key, "string");
}

// The array of that key, of any element type, with no more elements than `limit`.
Result<const GgufEntry*> GgufFile::array(std::string_view key, const char* wanted, int64_t limit) const {
  const GgufEntry* const found = entry(key);
  if (found == nullptr) return missing(key, wanted);
  if (found->type != GgufType::kArray) return wrong_type(*found, wanted);
  if (limit < 0 || found->count > static_cast<uint64_t>(limit))
    return resource_exhausted(path(), ": key ", printable(key), " has ", found->count,
                              " elements, the limit is ", limit);
  return found;
}

Result<std::vector<std::string_view>> GgufFile::get_string_array(std::string_view key, int64_t limit) const
    try {
  RIDGE_ASSIGN(const GgufEntry* const found, array(key, "array of string", limit));
  if (found->element != GgufType::kString) return wrong_type(*found, "array of string");
  std::vector<std::string_view> out(found->count);
  const std::byte* at = found->value;
  for (std::string_view& value : out) value = take_string(&at);
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted(path(), ": no memory for array ", printable(key));
}

Result<std::vector<float>> GgufFile::get_f32_array(std::string_view key, int64_t limit) const try {
  RIDGE_ASSIGN(const GgufEntry* const found, array(key, "array of f32", limit));
  const bool wide = found->element == GgufType::kF64;
  if (!wide && found->element != GgufType::kF32) return wrong_type(*found, "array of f32");
  std::vector<float> out(found->count);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] =
        wide ? static_cast<float>(load<double>(found->value + 8 * i)) : load<float>(found->value + 4 * i);
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted(path(), ": no memory for array ", printable(key));
}

Result<std::vector<int32_t>> GgufFile::get_i32_array(std::string_view key, int64_t limit) const try {
  RIDGE_ASSIGN(const GgufEntry* const found, array(key, "array of i32", limit));
  if (!is_integer(found->element)) return wrong_type(*found, "array of i32");
  const uint64_t step = gguf_type_bytes(found->element);
  std::vector<int32_t> out(found->count);
  for (size_t i = 0; i < out.size(); ++i) {
    Status status;
    with_integer(found->element, found->value + step * i, [&](auto value) {
      if (std::in_range<int32_t>(value))
        out[i] = static_cast<int32_t>(value);
      else
        status =
            corrupt(path(), ": element ", i, " of key ", printable(key), " is ", value, ", wanted an i32");
    });
    RIDGE_TRY(status);
  }
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted(path(), ": no memory for array ", printable(key));
}

Result<std::vector<bool>> GgufFile::get_bool_array(std::string_view key, int64_t limit) const try {
  RIDGE_ASSIGN(const GgufEntry* const found, array(key, "array of bool", limit));
  if (found->element != GgufType::kBool) return wrong_type(*found, "array of bool");
  std::vector<bool> out(found->count);
  for (size_t i = 0; i < out.size(); ++i) out[i] = found->value[i] != std::byte{0};
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted(path(), ": no memory for array ", printable(key));
}

}  // namespace ridge
