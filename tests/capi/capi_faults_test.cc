// Case I59 at the border: every allocation and system call that fails is a status, nothing is thrown out and
// nothing leaks.

#include "faults.h"

#include "capi/small_model.h"

namespace ridge {
namespace {

/// Whether a status is what a fault may lead to.
bool excused(ridge_status s) {
  return s == RIDGE_RESOURCE_EXHAUSTED || s == RIDGE_IO || s == RIDGE_INTERNAL;
}

ridge_status answer(const char* path, int64_t* tokens) {
  ridge_model_options o = RIDGE_MODEL_OPTIONS_INIT;
  o.threads = 1, o.context = 32;
  ridge_model* model = nullptr;
  ridge_status s = ridge_model_load(path, &o, &model);
  if (s != RIDGE_OK) return s;
  int32_t ids[24];
  size_t count = 0;
  const ridge_message message = {"user", "the"};
  s = ridge_chat_encode(model, &message, 1, ids, 24, &count);
  ridge_request r = RIDGE_REQUEST_INIT;
  r.prompt = ids, r.prompt_count = count, r.max_new_tokens = 3, r.ignore_model_end = 1;
  ridge_answer a = RIDGE_ANSWER_INIT;
  if (s == RIDGE_OK) s = ridge_generate(model, &r, nullptr, nullptr, &a);
  *tokens = a.tokens;
  ridge_model_destroy(model);
  return s;
}

TEST(CApiFaults, I59_a_fault_anywhere_between_loading_and_the_last_token_is_a_status_and_leaks_nothing) {
  if (!faults::kAvailable) GTEST_SKIP() << "the sanitizer needs the functions that would fail";
  const SmallFile file;
  int64_t tokens = 0;
  ASSERT_EQ(answer(file.path(), &tokens), RIDGE_OK) << ridge_error_message();  // fills tables made once
  ASSERT_EQ(tokens, 3);
  int64_t faults_met = 0;
  // Every 7th: a prime, so that each kind of allocation of a loop has its turn.
  for (int64_t n = 1; n < 200000; n += 7) {
    const int64_t before = faults::live_allocations;
    const int descriptors = faults::entries_of("/proc/self/fd");
    faults::until_fault = n;
    const ridge_status s = answer(file.path(), &tokens);
    const bool met = faults::until_fault <= 0;
    faults::until_fault = 0;
    EXPECT_EQ(faults::live_allocations, before) << "fault " << n;
    EXPECT_EQ(faults::entries_of("/proc/self/fd"), descriptors) << "fault " << n;
    ASSERT_TRUE(s == RIDGE_OK || excused(s)) << s << ": " << ridge_error_message();
    ASSERT_FALSE(HasFailure());
    if (!met) {
      EXPECT_EQ(s, RIDGE_OK);
      EXPECT_GT(faults_met, 100);
      return;
    }
    ++faults_met;
  }
  FAIL() << "every run met its fault";
}

TEST(CApiFaults, I59_a_fault_anywhere_in_an_operator_call_is_a_status_and_leaks_nothing) {
  if (!faults::kAvailable) GTEST_SKIP() << "the sanitizer needs the functions that would fail";
  float x[4] = {1, 2, 3, 4}, y[4] = {}, w[4] = {1, 1, 1, 1};
  int64_t rows[2] = {1, 4}, row[1] = {4};
  ridge_tensor tx{x, {RIDGE_TENSOR_CPU, 0}, 2, {RIDGE_TENSOR_FLOAT, 32, 1}, rows, nullptr, 0}, ty = tx,
                                                                                               tw = tx;
  ty.data = y, tw.data = w, tw.ndim = 1, tw.shape = row;
  const auto attempt = [&] {
    ridge_device_options o = RIDGE_DEVICE_OPTIONS_INIT;
    o.threads = 1;
    ridge_device* device = nullptr;
    ridge_stream* stream = nullptr;
    ridge_call* call = nullptr;
    const bool right = ridge_device_create(&o, &device) == RIDGE_OK &&
                       ridge_stream_create(device, &stream) == RIDGE_OK &&
                       ridge_call_create(device, "rms_norm", &call) == RIDGE_OK &&
                       ridge_call_set_operand(call, "x", &tx) == RIDGE_OK &&
                       ridge_call_set_operand(call, "y", &ty) == RIDGE_OK &&
                       ridge_call_set_operand(call, "w", &tw) == RIDGE_OK &&
                       ridge_call_run(call, stream, nullptr, 0) == RIDGE_OK;
    ridge_call_destroy(call);
    ridge_stream_destroy(stream);
    ridge_device_destroy(device);
    return right;
  };
  ASSERT_TRUE(attempt()) << ridge_error_message();
  EXPECT_GE(faults::each_fault(attempt, [](bool) {}), 8);
}

}  // namespace
}  // namespace ridge
