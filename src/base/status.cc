#include "base/status.h"

namespace ridge {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kDeclined:
      return "declined";
    case Code::kNotFound:
      return "not found";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kIo:
      return "input/output";
    case Code::kCancelled:
      return "cancelled";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

const std::string& Status::message() const {
  static const std::string kNone;
  return detail_ ? detail_->message : kNone;
}

Status Status::within(std::string_view where) const {
  // Who found it may have named the place already.
  const std::string place = text(where, ": ");
  return ok() || message().compare(0, place.size(), place) == 0 ? *this : Status(code(), place + message());
}

}  // namespace ridge
