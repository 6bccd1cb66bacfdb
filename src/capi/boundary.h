#pragma once
// The C API's border: what crosses it is a status and a line of text, never an exception.

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ridge.h"

namespace ridge::capi {

/// What ridge_error_message() says on this thread from now on. Allocates nothing.
void set_message(std::string_view message) noexcept;

/// The outcome of a function: a Status, or that the caller's buffer was too small.
struct Outcome {
  Status status;
  bool too_small = false;
  Outcome() = default;
  Outcome(Status s) : status(std::move(s)) {}
};
ridge_status report(const Outcome& outcome);
ridge_status status_of(Code code);

/// Runs the body of a function; whatever it throws becomes a status.
template <class Body>
ridge_status guarded(const Body& body) noexcept {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    set_message("out of memory");
    return RIDGE_RESOURCE_EXHAUSTED;
  } catch (const std::exception& e) {
    set_message(e.what());
    return RIDGE_INTERNAL;
  } catch (...) {
    set_message("an exception of unknown type was thrown");
    return RIDGE_INTERNAL;
  }
}

/// An error for an argument that is null.
template <class T>
Status needed(const T* pointer, const char* name) {
  return pointer != nullptr ? Status() : invalid_argument(name, " is NULL");
}

/// Bytes of a versioned struct in the first version of the API: what every caller has. A struct that grows
/// has its old size written down here, as `template <> inline constexpr size_t kFirstBytes<ridge_x> = 40;`.
template <class T>
inline constexpr size_t kFirstBytes = sizeof(T);
// A size beyond any that will ever be is one that nobody set.
inline constexpr size_t kLargestStruct = 1 << 16;

/// At least `first` bytes, and not absurd.
Status check_struct_size(size_t found, size_t first, const char* name);

/// Copies what the caller's struct and ours both have; the rest of *to stays, which holds the defaults. What
/// is beyond ours must be zero.
template <class T>
Status read_struct(const T* from, const char* name, T* to) {
  RIDGE_TRY(needed(from, name));
  RIDGE_TRY(check_struct_size(from->struct_size, kFirstBytes<T>, name));
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = sizeof(T); i < from->struct_size; ++i)
    if (bytes[i] != 0)
      return invalid_argument(name, " sets byte ", i, ", this library knows ", sizeof(T),
                              ": use a library as new as the header");
  std::memcpy(static_cast<void*>(to), from, std::min(sizeof(T), from->struct_size));
  return {};
}

/// Before anything is computed for a struct that the caller wants filled.
template <class T>
Status check_output(const T* to, const char* name) {
  RIDGE_TRY(needed(to, name));
  return check_struct_size(to->struct_size, kFirstBytes<T>, name);
}
/// Fills it as far as the caller knows it; fields that this library does not know become zero.
template <class T>
void write_struct(T value, T* to) {
  const size_t size = value.struct_size = to->struct_size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &value, std::min(sizeof(T), size));
}

/// The size-query convention: `count` is stored, then the elements if there is room.
template <class T>
Outcome write_buffer(const T* from, size_t size, T* to, size_t capacity, size_t* count, const char* name) {
  RIDGE_TRY(needed(count, "count"));
  if (capacity > 0) RIDGE_TRY(needed(to, name));
  *count = size;
  if (capacity == 0) return {};
  if (capacity < size) {
    Outcome o(invalid_argument(name, " has room for ", capacity, ", needs ", size));
    o.too_small = true;
    return o;
  }
  if (size > 0) std::memcpy(to, from, size * sizeof(T));
  return {};
}

/// A string for the caller to keep, given back by ridge_string_destroy.
char* new_string(std::string_view text);

}  // namespace ridge::capi
