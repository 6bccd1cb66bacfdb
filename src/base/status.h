#pragma once
// Errors are values: a code for programs and one line for people that names the offending value and the
// remedy.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"

namespace ridge {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,    // the caller's value is wrong
  kDeclined,           // valid, but no kernel or feature here takes it
  kNotFound,           // a file, key or tensor that should exist does not
  kCorrupt,            // a file contradicts itself or its format
  kResourceExhausted,  // memory, disk, a limit of limits.h
  kIo,                 // the operating system refused
  kCancelled,          // Ctrl-C or the caller
  kInternal,           // a defect of ours
};
const char* code_name(Code code);

/// The outcome of an operation. Cheap when ok (a null pointer).
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : detail_(std::make_shared<const Detail>(Detail{code, std::move(message)})) {}
  bool ok() const { return detail_ == nullptr; }
  Code code() const { return detail_ ? detail_->code : Code::kOk; }
  const std::string& message() const;
  /// The same error with `where` and ": " before its message.
  Status within(std::string_view where) const;
  /// For a caller that has a reason to go on: says so where it is read.
  void ignore() const {}

 private:
  struct Detail {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Detail> detail_;
};

template <class... P>
Status invalid_argument(const P&... parts) {
  return {Code::kInvalidArgument, text(parts...)};
}
template <class... P>
Status declined(const P&... parts) {
  return {Code::kDeclined, text(parts...)};
}
template <class... P>
Status not_found(const P&... parts) {
  return {Code::kNotFound, text(parts...)};
}
template <class... P>
Status corrupt(const P&... parts) {
  return {Code::kCorrupt, text(parts...)};
}
template <class... P>
Status resource_exhausted(const P&... parts) {
  return {Code::kResourceExhausted, text(parts...)};
}
template <class... P>
Status io_error(const P&... parts) {
  return {Code::kIo, text(parts...)};
}
template <class... P>
Status internal_error(const P&... parts) {
  return {Code::kInternal, text(parts...)};
}

/// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = internal_error("a Result was made from an ok Status, without a value");
  }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T take() { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

#define RIDGE_JOIN_(a, b) a##b
#define RIDGE_JOIN(a, b) RIDGE_JOIN_(a, b)

/// Returns from the enclosing function when `expression` (a Status) is an error.
#define RIDGE_TRY(expression)                                                  \
  do {                                                                         \
    if (::ridge::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

/// RIDGE_ASSIGN(const auto file, open(path)): the value, or returns the error.
#define RIDGE_ASSIGN(declaration, expression) \
  RIDGE_ASSIGN_(declaration, expression, RIDGE_JOIN(result_, __LINE__))
#define RIDGE_ASSIGN_(declaration, expression, result) \
  auto result = (expression);                          \
  if (!result.ok()) return result.status();            \
  declaration = result.take()

}  // namespace ridge
