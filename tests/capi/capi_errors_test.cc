// What the border promises: statuses and messages, versioned structs, the log.

#include <chrono>
#include <cstring>
#include <thread>

#include "base/log.h"
#include "capi/boundary.h"
#include "capi/small_model.h"

namespace ridge {
namespace {

TEST(CApiErrors, null_handles_and_outputs_are_errors_that_name_them) {
  size_t n = 0;
  int found = 0;
  int64_t i64 = 0;
  double value = 0;
  ridge_model_info info = RIDGE_MODEL_INFO_INIT;
  ridge_request request = RIDGE_REQUEST_INIT;
  ridge_event event = RIDGE_EVENT_INIT;
  ridge_stream* stream = nullptr;
  ridge_call* call = nullptr;
  char* json = nullptr;
  const auto refused = [](ridge_status status, const char* name) {
    EXPECT_EQ(status, RIDGE_INVALID_ARGUMENT);
    return says(std::string(name) + " is NULL");
  };
  EXPECT_TRUE(refused(ridge_model_load(nullptr, nullptr, nullptr), "path"));
  EXPECT_TRUE(refused(ridge_model_load("x", nullptr, nullptr), "model"));
  EXPECT_TRUE(refused(ridge_model_get_info(nullptr, &info), "model"));
  EXPECT_TRUE(refused(ridge_tokenize(nullptr, "a", 1, 0, nullptr, 0, &n), "model"));
  EXPECT_TRUE(refused(ridge_detokenize(nullptr, nullptr, 0, 0, nullptr, 0, &n), "model"));
  EXPECT_TRUE(refused(ridge_chat_encode(nullptr, nullptr, 0, nullptr, 0, &n), "model"));
  EXPECT_TRUE(refused(ridge_submit(nullptr, &request, &i64), "model"));
  EXPECT_TRUE(refused(ridge_step(nullptr, &n, &n), "model"));
  EXPECT_TRUE(refused(ridge_next_event(nullptr, &event, &found), "model"));
  EXPECT_TRUE(refused(ridge_cancel(nullptr, 1), "model"));
  EXPECT_TRUE(refused(ridge_generate(nullptr, &request, nullptr, nullptr, nullptr), "model"));
  EXPECT_TRUE(refused(ridge_profile(nullptr, nullptr, &json), "model"));
  EXPECT_TRUE(refused(ridge_probe(1, nullptr, nullptr), "path"));
  EXPECT_TRUE(refused(ridge_device_create(nullptr, nullptr), "device"));
  EXPECT_TRUE(refused(ridge_stream_create(nullptr, &stream), "device"));
  EXPECT_TRUE(refused(ridge_call_create(nullptr, "add", &call), "device"));
  EXPECT_TRUE(refused(ridge_call_set_operand(nullptr, "x", nullptr), "call"));
  EXPECT_TRUE(refused(ridge_call_set_param(nullptr, "x", 0), "call"));
  EXPECT_TRUE(refused(ridge_call_get_param(nullptr, "x", &value), "call"));
  EXPECT_TRUE(refused(ridge_call_workspace(nullptr, &i64), "call"));
  EXPECT_TRUE(refused(ridge_call_run(nullptr, nullptr, nullptr, 0), "call"));
  EXPECT_TRUE(refused(ridge_packed_bytes(nullptr, "linear", RIDGE_F32, 1, 1, &i64), "device"));
  EXPECT_TRUE(refused(ridge_pack(nullptr, "linear", RIDGE_F32, 1, 1, nullptr, 0, nullptr, 0), "device"));
  EXPECT_TRUE(refused(ridge_operator_describe(nullptr, nullptr), "op"));
  EXPECT_TRUE(refused(ridge_operator_describe("add", nullptr), "info"));
}

TEST(CApiErrors, a_machine_file_that_cannot_be_written_is_refused_before_anything_is_measured) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(ridge_probe(0, nullptr, "/nonexistent folder/machine.json"), RIDGE_OK);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(says("/nonexistent folder"));
}

TEST(CApiErrors, memory_of_another_device_or_past_the_end_of_all_memory_is_refused) {
  alignas(64) float data[8] = {};
  int64_t shape[2] = {2, 4};
  ridge_device* device = nullptr;
  ridge_call* call = nullptr;
  ASSERT_EQ(ridge_device_create(nullptr, &device), RIDGE_OK);
  ASSERT_EQ(ridge_call_create(device, "add", &call), RIDGE_OK);
  ridge_tensor t = {};
  t.data = data, t.device.device_type = RIDGE_TENSOR_CPU, t.ndim = 2, t.shape = shape;
  t.dtype = {RIDGE_TENSOR_FLOAT, 32, 1};
  EXPECT_EQ(ridge_call_set_operand(call, "a", &t), RIDGE_OK) << ridge_error_message();
  t.device.device_id = 7;
  EXPECT_EQ(ridge_call_set_operand(call, "a", &t), RIDGE_DECLINED);
  EXPECT_TRUE(says("device_id is 7"));
  t.device.device_id = 0;
  // Behind the end, and one element of the eight behind it.
  const uint64_t behind = UINTPTR_MAX - reinterpret_cast<uintptr_t>(data);
  for (const uint64_t offset : {static_cast<uint64_t>(-4), behind - 27}) {
    t.byte_offset = offset;
    EXPECT_EQ(ridge_call_set_operand(call, "a", &t), RIDGE_INVALID_ARGUMENT);
    EXPECT_TRUE(says("beyond the end of memory"));
  }
  ridge_call_destroy(call);
  ridge_device_destroy(device);
}

TEST(CApiErrors, null_is_taken_where_something_is_given_back) {
  ridge_model_destroy(nullptr);
  ridge_device_destroy(nullptr);
  ridge_stream_destroy(nullptr);
  ridge_call_destroy(nullptr);
  ridge_string_destroy(nullptr);
}

TEST(CApiErrors, a_tensor_has_the_layout_of_dlpacks) {
  // Offsets of DLTensor and of the structs in it, on platforms with pointers of 8 bytes (DLPack 1.0).
  static_assert(sizeof(void*) == 8);
  EXPECT_EQ(offsetof(ridge_tensor, data), 0u);
  EXPECT_EQ(offsetof(ridge_tensor, device.device_type), 8u);
  EXPECT_EQ(offsetof(ridge_tensor, device.device_id), 12u);
  EXPECT_EQ(offsetof(ridge_tensor, ndim), 16u);
  EXPECT_EQ(offsetof(ridge_tensor, dtype.code), 20u);
  EXPECT_EQ(offsetof(ridge_tensor, dtype.bits), 21u);
  EXPECT_EQ(offsetof(ridge_tensor, dtype.lanes), 22u);
  EXPECT_EQ(offsetof(ridge_tensor, shape), 24u);
  EXPECT_EQ(offsetof(ridge_tensor, strides), 32u);
  EXPECT_EQ(offsetof(ridge_tensor, byte_offset), 40u);
  EXPECT_EQ(sizeof(ridge_tensor), 48u);
}

// A struct as a newer header might have it.
struct NewerInfo {
  ridge_operator_info known;
  uint64_t more[2];
};

TEST(CApiErrors, structs_of_older_unset_and_newer_callers) {
  ridge_operator_info info = RIDGE_OPERATOR_INFO_INIT;
  for (const size_t wrong : {size_t{0}, sizeof info - 1, size_t{1} << 40, SIZE_MAX}) {
    info.struct_size = wrong;
    EXPECT_EQ(ridge_operator_describe("add", &info), RIDGE_INVALID_ARGUMENT);
    EXPECT_TRUE(says("struct_size is " + std::to_string(wrong)));
  }
  // A newer caller asks for more than is known here: the rest comes back as zero.
  NewerInfo newer = {RIDGE_OPERATOR_INFO_INIT, {5, 5}};
  newer.known.struct_size = sizeof newer;
  ASSERT_EQ(ridge_operator_describe("add", &newer.known), RIDGE_OK);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_EQ(newer.known.operands, 3u);
  EXPECT_EQ(newer.more[0] + newer.more[1], 0u);
}

/// A struct as it may be after it grew: its first version ended before `added`.
struct Grown {
  size_t struct_size;
  int64_t first;
  int64_t added;
};
}  // namespace
template <>
inline constexpr size_t capi::kFirstBytes<Grown> = offsetof(Grown, added);
namespace {

TEST(CApiErrors, a_caller_of_the_first_version_gets_defaults_for_what_was_added) {
  const size_t first = offsetof(Grown, added);
  const Grown from = {first, 5, 6};
  Grown to = {sizeof to, 1, 2};
  ASSERT_TRUE(capi::read_struct(&from, "it", &to).ok());
  EXPECT_EQ(to.first, 5);
  EXPECT_EQ(to.added, 2) << "not what happens to lie behind the caller's struct";
  const Grown small = {first - 1, 5, 6};
  EXPECT_FALSE(capi::read_struct(&small, "it", &to).ok());
  Grown out = {first, 0, 7};
  ASSERT_TRUE(capi::check_output(&out, "it").ok());
  capi::write_struct(Grown{sizeof(Grown), 3, 4}, &out);
  EXPECT_EQ(out.struct_size, first);
  EXPECT_EQ(out.first, 3);
  EXPECT_EQ(out.added, 7) << "written beyond the caller's struct";
}

struct NewerOptions {
  ridge_device_options known;
  uint64_t more;
};

TEST(CApiErrors, a_newer_callers_option_that_is_not_known_here_is_not_ignored) {
  ridge_device* device = nullptr;
  NewerOptions newer = {RIDGE_DEVICE_OPTIONS_INIT, 0};
  newer.known.struct_size = sizeof newer, newer.known.threads = 1;
  ASSERT_EQ(ridge_device_create(&newer.known, &device), RIDGE_OK) << ridge_error_message();
  ridge_device_destroy(device);
  device = nullptr;
  newer.more = 1;
  EXPECT_EQ(ridge_device_create(&newer.known, &device), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("options sets byte"));
  EXPECT_EQ(device, nullptr);
}

TEST(CApiErrors, messages_are_per_thread_and_bounded) {
  ridge_operator_info info = RIDGE_OPERATOR_INFO_INIT;
  EXPECT_EQ(ridge_operator_describe("nothing of that name", &info), RIDGE_NOT_FOUND);
  const std::string here = ridge_error_message();
  EXPECT_NE(here.find("'nothing of that name'"), std::string::npos);
  std::thread([] { EXPECT_STREQ(ridge_error_message(), ""); }).join();
  EXPECT_EQ(here, ridge_error_message());
  EXPECT_EQ(ridge_operator_describe(std::string(100000, 'x').c_str(), &info), RIDGE_NOT_FOUND);
  EXPECT_LT(std::strlen(ridge_error_message()), 1024u);
}

TEST(CApiErrors, every_status_has_a_name) {
  for (int s = RIDGE_OK; s <= RIDGE_BUFFER_TOO_SMALL; ++s)
    EXPECT_STRNE(ridge_status_name(s), "unknown status") << s;
  EXPECT_STREQ(ridge_status_name(10), "unknown status");
  EXPECT_STREQ(ridge_status_name(RIDGE_DECLINED), "declined");
}

void keep_line(void* user, ridge_log_level level, const char* line, size_t bytes) {
  *static_cast<std::string*>(user) += std::to_string(level) + ":" + std::string(line, bytes) + ";";
}

TEST(CApiErrors, log_lines_of_the_level_go_to_the_callback) {
  std::string lines;
  ASSERT_EQ(ridge_set_log(keep_line, &lines, RIDGE_LOG_INFO), RIDGE_OK);
  log(LogLevel::kDebug, "not this");
  log(LogLevel::kInfo, "one ", 1);
  log(LogLevel::kError, "two");
  ASSERT_EQ(ridge_set_log(nullptr, nullptr, RIDGE_LOG_ERROR), RIDGE_OK);
  log(LogLevel::kWarning, "nor this");
  EXPECT_EQ(lines, "1:one 1;3:two;");
  EXPECT_EQ(ridge_set_log(keep_line, &lines, 4), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("least is 4"));
  ridge_set_log(nullptr, nullptr, RIDGE_LOG_WARNING);
}

}  // namespace
}  // namespace ridge
