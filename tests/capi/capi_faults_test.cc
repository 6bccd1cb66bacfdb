// Case I59 at the border: every allocation and system call that fails is a status, nothing is thrown out and
// nothing leaks.

#include "faults.h"

#include <cstring>

#include "capi/small_model.h"

namespace ridge {
namespace {

/// Right: true. Wrong: false, and a failure where a fault may not lead to that status.
bool right(ridge_status s) {
  EXPECT_TRUE(s == RIDGE_OK || s == RIDGE_RESOURCE_EXHAUSTED || s == RIDGE_IO || s == RIDGE_INTERNAL)
      << s << ": " << ridge_error_message();
  return s == RIDGE_OK;
}

ridge_status load(const SmallFile& file, ridge_model** model) {
  ridge_model_options o = RIDGE_MODEL_OPTIONS_INIT;
  o.threads = 1, o.context = 32;
  return ridge_model_load(file.path(), &o, model);
}

/// Encodes a chat and answers it with three tokens.
ridge_status answer(ridge_model* model, ridge_answer* a) {
  int32_t ids[24];
  size_t count = 0;
  const ridge_message message = {"user", "the"};
  const ridge_status s = ridge_chat_encode(model, &message, 1, ids, 24, &count);
  if (s != RIDGE_OK) return s;
  ridge_request r = RIDGE_REQUEST_INIT;
  r.prompt = ids, r.prompt_count = count, r.max_new_tokens = 3, r.ignore_model_end = 1;
  return ridge_generate(model, &r, nullptr, nullptr, a);
}

// Loading and answering apart, so that a fault in an answer takes no load: some 630 faults and 110, 0.7 s
// together.

TEST(CApiFaults, I59_each_fault_while_loading_is_a_status_and_leaks_nothing) {
  if (!faults::kAvailable) GTEST_SKIP() << "the sanitizer needs the functions that would fail";
  const SmallFile file;
  const auto attempt = [&] {
    ridge_model* model = nullptr;
    const bool loaded = right(load(file, &model));
    EXPECT_EQ(model != nullptr, loaded);
    ridge_model_destroy(model);
    return loaded;
  };
  ASSERT_TRUE(attempt()) << ridge_error_message();  // fills tables made once
  EXPECT_GT(faults::each_fault(attempt, [](bool) {}), 500);
}

TEST(CApiFaults,
     I59_each_fault_from_the_chat_to_the_last_token_is_a_status_and_later_answers_are_right_or_ask_to_load) {
  if (!faults::kAvailable) GTEST_SKIP() << "the sanitizer needs the functions that would fail";
  const SmallFile file;
  ridge_model* model = nullptr;
  ASSERT_EQ(load(file, &model), RIDGE_OK) << ridge_error_message();
  ridge_answer want = RIDGE_ANSWER_INIT;
  ASSERT_EQ(answer(model, &want), RIDGE_OK) << ridge_error_message();
  ASSERT_EQ(want.tokens, 3);
  const auto answered = [&] {
    ridge_answer a = RIDGE_ANSWER_INIT;
    if (!right(answer(model, &a))) return false;
    EXPECT_EQ(a.tokens, want.tokens);
    EXPECT_EQ(a.logprob, want.logprob);
    return true;
  };
  int64_t reloads = 0;
  const auto after = [&](bool) {
    if (answered()) return;
    // A fault within a step may leave the sequences' state behind the cache's.
    EXPECT_NE(std::strstr(ridge_error_message(), "load the model again"), nullptr) << ridge_error_message();
    ridge_model_destroy(model);
    ASSERT_EQ(load(file, &model), RIDGE_OK) << ridge_error_message();
    EXPECT_TRUE(answered()) << ridge_error_message();
    ++reloads;
  };
  const int64_t met = faults::each_fault(answered, after);
  EXPECT_GT(met, 100);
  EXPECT_LT(reloads, met);
  ridge_model_destroy(model);
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
    const bool ran = ridge_device_create(&o, &device) == RIDGE_OK &&
                     ridge_stream_create(device, &stream) == RIDGE_OK &&
                     ridge_call_create(device, "rms_norm", &call) == RIDGE_OK &&
                     ridge_call_set_operand(call, "x", &tx) == RIDGE_OK &&
                     ridge_call_set_operand(call, "y", &ty) == RIDGE_OK &&
                     ridge_call_set_operand(call, "w", &tw) == RIDGE_OK &&
                     ridge_call_run(call, stream, nullptr, 0) == RIDGE_OK;
    ridge_call_destroy(call);
    ridge_stream_destroy(stream);
    ridge_device_destroy(device);
    return ran;
  };
  ASSERT_TRUE(attempt()) << ridge_error_message();
  EXPECT_GE(faults::each_fault(attempt, [](bool) {}), 8);
}

}  // namespace
}  // namespace ridge
