// Case I59 at the border: every allocation and system call that fails is a status, nothing is thrown out and
// nothing leaks.

#include "faults.h"

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

TEST(CApiFaults, I59_each_fault_from_the_chat_to_the_last_token_is_a_status_and_later_answers_are_right) {
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
  const auto after = [&](bool) { EXPECT_TRUE(answered()) << ridge_error_message(); };
  EXPECT_GT(faults::each_fault(answered, after), 60);
  ridge_model_destroy(model);
}

TEST(CApiFaults, I59_each_fault_in_a_step_ends_its_requests_with_an_event_each_and_the_next_two_run) {
  if (!faults::kAvailable) GTEST_SKIP() << "the sanitizer needs the functions that would fail";
  const SmallFile file;
  ridge_model* model = nullptr;
  ASSERT_EQ(load(file, &model), RIDGE_OK) << ridge_error_message();
  int64_t ids[2] = {};
  const auto finish = [&] {
    for (size_t running = 1; running > 0;)
      if (!right(ridge_step(model, nullptr, &running))) return false;
    return true;
  };
  const auto run = [&] {
    const int32_t prompt[] = {5, 6, 7};
    ridge_request r = RIDGE_REQUEST_INIT;
    r.prompt = prompt, r.prompt_count = 3, r.max_new_tokens = 3, r.ignore_model_end = 1;
    for (int64_t& id : ids) id = 0;
    for (int64_t& id : ids)
      if (!right(ridge_submit(model, &r, &id))) return false;
    return finish();
  };
  const auto take_events = [&] {
    int ends[2] = {};  // no memory of the test's own
    for (int found = 1; found != 0;) {
      ridge_event e = RIDGE_EVENT_INIT;
      ASSERT_EQ(ridge_next_event(model, &e, &found), RIDGE_OK) << ridge_error_message();
      for (int i = 0; i < 2; ++i)
        ends[i] += found != 0 && e.request == ids[i] && e.finish != RIDGE_FINISH_NONE;
    }
    for (int i = 0; i < 2; ++i) EXPECT_EQ(ends[i], ids[i] != 0) << "request " << i;
  };
  const auto attempt = [&] {
    const bool done = run();
    if (!done) {
      faults::until_fault = 0;
      EXPECT_TRUE(finish()) << ridge_error_message();
      take_events();
      EXPECT_TRUE(run()) << ridge_error_message();
    }
    take_events();
    return done;
  };
  EXPECT_TRUE(attempt());  // fills tables made once
  EXPECT_GT(faults::each_fault(attempt, [](bool) {}), 50);
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
