#include "capi/boundary.h"

#include <algorithm>

#include "base/log.h"
#include "base/visible.h"

namespace ridge::capi {

namespace {
// No allocation, so that it can be said that there is no memory.
thread_local char message_of_thread[1024] = "";

static_assert(static_cast<int>(Code::kInternal) == RIDGE_INTERNAL);
static_assert(static_cast<int>(Code::kCancelled) == RIDGE_CANCELLED);
static_assert(static_cast<int>(Code::kInvalidArgument) == RIDGE_INVALID_ARGUMENT);
static_assert(static_cast<int>(LogLevel::kError) == RIDGE_LOG_ERROR);

// The structs as the first version has them, with pointers of 8 bytes. One that grows keeps its number here
// as its kFirstBytes.
static_assert(sizeof(ridge_model_options) == 80);
static_assert(sizeof(ridge_model_info) == 96);
static_assert(sizeof(ridge_sampling) == 72);
static_assert(sizeof(ridge_request) == 64);
static_assert(sizeof(ridge_event) == 288);
static_assert(sizeof(ridge_token) == 40);
static_assert(sizeof(ridge_answer) == 48);
static_assert(sizeof(ridge_workload) == 40);
static_assert(sizeof(ridge_operator_info) == 24);
static_assert(sizeof(ridge_operand_info) == 56);
static_assert(sizeof(ridge_device_options) == 24);
static_assert(sizeof(ridge_cost) == 112);
}  // namespace

void set_message(std::string_view message) noexcept {
  size_t size = std::min(message.size(), sizeof message_of_thread - 1);
  // Not in the middle of a character.
  if (size < message.size())
    while (size > 0 && (static_cast<unsigned char>(message[size]) & 0xC0) == 0x80) --size;
  // The message may come from the buffer itself.
  std::memmove(message_of_thread, message.data(), size);
  message_of_thread[size] = 0;
}

ridge_status status_of(Code code) {
  return static_cast<ridge_status>(code);
}

ridge_status report(const Outcome& outcome) {
  if (outcome.status.ok()) return RIDGE_OK;
  // One line, whatever a file wrote into it.
  set_message(visible(outcome.status.message(), sizeof message_of_thread));
  return outcome.too_small ? RIDGE_BUFFER_TOO_SMALL : status_of(outcome.status.code());
}

Status check_struct_size(size_t found, size_t first, const char* name) {
  if (found >= first && found <= kLargestStruct) return {};
  return invalid_argument(name, "->struct_size is ", found, ", needs ", first,
                          ": begin with the RIDGE_..._INIT of its type");
}

char* new_string(std::string_view text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

}  // namespace ridge::capi

using namespace ridge;

const char* ridge_version(void) {
  return RIDGE_VERSION;
}

const char* ridge_status_name(int32_t status) {
  switch (status) {
    case RIDGE_OK:
      return "ok";
    case RIDGE_INVALID_ARGUMENT:
      return "invalid argument";
    case RIDGE_DECLINED:
      return "declined";
    case RIDGE_NOT_FOUND:
      return "not found";
    case RIDGE_CORRUPT:
      return "corrupt";
    case RIDGE_RESOURCE_EXHAUSTED:
      return "resource exhausted";
    case RIDGE_IO:
      return "input or output error";
    case RIDGE_CANCELLED:
      return "cancelled";
    case RIDGE_INTERNAL:
      return "internal error";
    case RIDGE_BUFFER_TOO_SMALL:
      return "buffer too small";
  }
  return "unknown status";
}

const char* ridge_error_message(void) {
  return capi::message_of_thread;
}

ridge_status ridge_set_log(ridge_log_callback callback, void* user, int32_t least) {
  return capi::guarded([&]() -> capi::Outcome {
    if (least < RIDGE_LOG_DEBUG || least > RIDGE_LOG_ERROR)
      return invalid_argument("least is ", least, ", needs a ridge_log_level, 0 to 3");
    if (callback == nullptr) {
      set_log_sink(nullptr);
    } else {
      set_log_sink([callback, user](LogLevel level, std::string_view line) {
        callback(user, static_cast<ridge_log_level>(level), line.data(), line.size());
      });
    }
    set_log_level(static_cast<LogLevel>(least));
    return {};
  });
}

void ridge_string_destroy(char* string) {
  delete[] string;
}
