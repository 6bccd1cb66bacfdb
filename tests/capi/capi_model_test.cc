// Models through the C API: loading, text, requests, generation.

#include <thread>

#include "capi/small_model.h"

namespace ridge {
namespace {

ridge_request greedy(const std::vector<int32_t>& prompt, int64_t tokens) {
  ridge_request r = RIDGE_REQUEST_INIT;
  r.prompt = prompt.data(), r.prompt_count = prompt.size(), r.max_new_tokens = tokens;
  r.ignore_model_end = 1;
  return r;
}

struct Collected {
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::string text;
  int finish = RIDGE_FINISH_NONE, stop_at = 0;
};
int collect(void* user, const ridge_token* token) {
  auto& c = *static_cast<Collected*>(user);
  c.tokens.push_back(token->token), c.logprobs.push_back(token->logprob);
  c.text.append(token->text, token->text_bytes);
  c.finish = token->finish;
  return static_cast<int>(c.tokens.size()) == c.stop_at ? 7 : 0;
}

TEST(CApiModel, info_says_what_was_loaded) {
  const LoadedModel model(3);
  ridge_model_info info = RIDGE_MODEL_INFO_INIT;
  ASSERT_EQ(ridge_model_get_info(model, &info), RIDGE_OK);
  EXPECT_STREQ(info.architecture, "llama");
  EXPECT_EQ(info.vocab, kSmallVocab);
  EXPECT_EQ(info.layers, 1);
  EXPECT_EQ(info.context, 128);
  EXPECT_EQ(info.threads, 1);
  EXPECT_EQ(info.bos, 257);
  EXPECT_EQ(info.eos, 256);
  EXPECT_EQ(info.has_chat_template, 1);
  // f32 keys and values of 32 for 3 sequences of 128 tokens.
  EXPECT_GE(info.kv_bytes, 3 * 128 * 2 * 32 * 4);
}

TEST(CApiModel, options_that_mean_nothing_are_refused_by_name_and_value) {
  const SmallFile file;
  ridge_model* model = nullptr;
  const auto refused = [&](const ridge_model_options& o, const char* part) {
    EXPECT_EQ(ridge_model_load(file.path(), &o, &model), RIDGE_INVALID_ARGUMENT);
    EXPECT_EQ(model, nullptr);
    return says(part);
  };
  ridge_model_options o = RIDGE_MODEL_OPTIONS_INIT;
  o.threads = -1;
  EXPECT_TRUE(refused(o, "threads is -1"));
  o = RIDGE_MODEL_OPTIONS_INIT, o.isa = "mmx";
  EXPECT_TRUE(refused(o, "mmx"));
  o = RIDGE_MODEL_OPTIONS_INIT, o.kv = "f64";
  EXPECT_TRUE(refused(o, "'f64'"));
  o = RIDGE_MODEL_OPTIONS_INIT, o.activations = "int4";
  EXPECT_TRUE(refused(o, "'int4'"));
  o = RIDGE_MODEL_OPTIONS_INIT, o.without_fusions = "add_rms_norm,nothing";
  EXPECT_TRUE(refused(o, "'nothing'"));
  o = RIDGE_MODEL_OPTIONS_INIT, o.context = 129;
  EXPECT_TRUE(refused(o, "129"));
  o = RIDGE_MODEL_OPTIONS_INIT, o.struct_size = 0;
  EXPECT_TRUE(refused(o, "struct_size is 0"));
  EXPECT_EQ(ridge_model_load("no/such/file.gguf", nullptr, &model), RIDGE_NOT_FOUND);
  EXPECT_TRUE(says("no/such/file.gguf"));
}

TEST(CApiModel, every_option_is_taken) {
  const SmallFile file;
  ridge_model* model = nullptr;
  ridge_model_options o = {sizeof o, 2, 2, "scalar", "int8", "q8", "gpt-2", "all", 96, 16, 5};
  ASSERT_EQ(ridge_model_load(file.path(), &o, &model), RIDGE_OK) << ridge_error_message();
  ridge_model_info info = RIDGE_MODEL_INFO_INIT;
  ASSERT_EQ(ridge_model_get_info(model, &info), RIDGE_OK);
  EXPECT_EQ(info.context, 96);
  EXPECT_EQ(info.threads, 2);
  ridge_model_destroy(model);
}

TEST(CApiText, sizes_are_asked_for_first_and_short_buffers_stay_untouched) {
  const LoadedModel model;
  const std::string text = "the theory";
  size_t count = 0;
  ASSERT_EQ(ridge_tokenize(model, text.data(), text.size(), 0, nullptr, 0, &count), RIDGE_OK);
  ASSERT_GT(count, 1u);
  std::vector<int32_t> ids(count, -5);
  const size_t needed = count;
  EXPECT_EQ(ridge_tokenize(model, text.data(), text.size(), 0, ids.data(), needed - 1, &count),
            RIDGE_BUFFER_TOO_SMALL);
  EXPECT_EQ(count, needed);
  EXPECT_EQ(ids, std::vector<int32_t>(needed, -5));
  EXPECT_TRUE(says("needs " + std::to_string(needed)));
  ASSERT_EQ(ridge_tokenize(model, text.data(), text.size(), 0, ids.data(), needed, &count), RIDGE_OK);
  EXPECT_EQ(ids[0], 260);  // "the"

  size_t bytes = 0;
  ASSERT_EQ(ridge_detokenize(model, ids.data(), ids.size(), 0, nullptr, 0, &bytes), RIDGE_OK);
  EXPECT_EQ(bytes, text.size() + 1);
  std::string back(bytes, '#');
  EXPECT_EQ(ridge_detokenize(model, ids.data(), ids.size(), 0, back.data(), bytes - 1, &bytes),
            RIDGE_BUFFER_TOO_SMALL);
  ASSERT_EQ(ridge_detokenize(model, ids.data(), ids.size(), 0, back.data(), bytes, &bytes), RIDGE_OK);
  EXPECT_STREQ(back.c_str(), text.c_str());
}

TEST(CApiText, empty_texts_and_bytes_that_are_no_utf8_are_texts) {
  const LoadedModel model;
  EXPECT_TRUE(tokens_of(model, "", 0).empty());
  EXPECT_EQ(tokens_of(model, "", RIDGE_TOKENIZE_BOS), std::vector<int32_t>{257});
  EXPECT_EQ(tokens_of(model, std::string("\xff\0a", 3), 0), (std::vector<int32_t>{255, 0, 'a'}));
  size_t bytes = 0;
  EXPECT_EQ(ridge_detokenize(model, nullptr, 0, 0, nullptr, 0, &bytes), RIDGE_OK);
  EXPECT_EQ(bytes, 1u);
}

TEST(CApiText, control_tokens_in_a_text_are_ids_only_when_asked_for) {
  const LoadedModel model;
  EXPECT_EQ(tokens_of(model, "<|end|>", RIDGE_TOKENIZE_SPECIAL), std::vector<int32_t>{256});
  EXPECT_EQ(tokens_of(model, "<|end|>", 0).size(), 7u);
  size_t count = 0;
  EXPECT_EQ(ridge_tokenize(model, "a", 1, 4, nullptr, 0, &count), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("flags is 4"));
}

TEST(CApiText, an_id_outside_of_the_vocabulary_is_named) {
  const LoadedModel model;
  const int32_t ids[] = {1, 264};
  size_t bytes = 0;
  EXPECT_EQ(ridge_detokenize(model, ids, 2, 0, nullptr, 0, &bytes), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("ids[1] is 264"));
}

TEST(CApiChat, I31_no_messages_is_an_error_and_a_role_is_the_templates_to_judge) {
  const LoadedModel model;
  size_t count = 0;
  EXPECT_EQ(ridge_chat_encode(model, nullptr, 0, nullptr, 0, &count), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("at least one message"));
  const ridge_message odd[] = {{"wizard", "hi"}};
  ASSERT_EQ(ridge_chat_encode(model, odd, 1, nullptr, 0, &count), RIDGE_OK) << ridge_error_message();
  std::vector<int32_t> ids(count);
  ASSERT_EQ(ridge_chat_encode(model, odd, 1, ids.data(), count, &count), RIDGE_OK);
  EXPECT_EQ(ids, tokens_of(model, "<|start|>wizard\nhi<|end|><|start|>assistant\n", RIDGE_TOKENIZE_SPECIAL));
  const ridge_message forbidden[] = {{"user", "a"}, {"forbidden", "b"}};
  EXPECT_EQ(ridge_chat_encode(model, forbidden, 2, nullptr, 0, &count), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("role forbidden is not known"));
}

TEST(CApiChat, a_message_without_text_or_of_bad_utf8_is_named) {
  const LoadedModel model;
  size_t count = 0;
  const ridge_message missing[] = {{"user", "a"}, {"user", nullptr}};
  EXPECT_EQ(ridge_chat_encode(model, missing, 2, nullptr, 0, &count), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("messages[1].content is NULL"));
  const ridge_message broken[] = {{"us\xff", "a"}};
  EXPECT_EQ(ridge_chat_encode(model, broken, 1, nullptr, 0, &count), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("messages[0].role"));
  const LoadedModel plain(1, false);
  const ridge_message fine[] = {{"user", "a"}};
  EXPECT_EQ(ridge_chat_encode(plain, fine, 1, nullptr, 0, &count), RIDGE_DECLINED);
  EXPECT_TRUE(says("no chat template"));
}

TEST(CApiRequests, stepping_gives_the_tokens_that_generate_gives) {
  const LoadedModel model(2);
  const std::vector<int32_t> prompt = tokens_of(model, "the thing", RIDGE_TOKENIZE_BOS);
  const ridge_request request = greedy(prompt, 6);
  Collected whole;
  ridge_answer answer = RIDGE_ANSWER_INIT;
  ASSERT_EQ(ridge_generate(model, &request, collect, &whole, &answer), RIDGE_OK) << ridge_error_message();
  ASSERT_EQ(whole.tokens.size(), 6u);
  EXPECT_EQ(answer.tokens, 6);
  EXPECT_EQ(answer.finish, RIDGE_FINISH_LENGTH);
  EXPECT_EQ(whole.finish, RIDGE_FINISH_LENGTH);
  double sum = 0;
  for (const float p : whole.logprobs) {
    EXPECT_LE(p, 0);
    sum += static_cast<double>(p);
  }
  EXPECT_DOUBLE_EQ(answer.logprob, sum);
  EXPECT_GT(answer.first_token_us, 0);
  EXPECT_GE(answer.total_us, answer.first_token_us);

  int64_t ids[2] = {};
  for (int64_t& id : ids) ASSERT_EQ(ridge_submit(model, &request, &id), RIDGE_OK);
  EXPECT_NE(ids[0], ids[1]);
  std::vector<int32_t> tokens[2];
  size_t waiting = 0, running = 2;
  while (running > 0) {
    ASSERT_EQ(ridge_step(model, &waiting, &running), RIDGE_OK) << ridge_error_message();
    for (int found = 1; found != 0;) {
      ridge_event e = RIDGE_EVENT_INIT;
      ASSERT_EQ(ridge_next_event(model, &e, &found), RIDGE_OK);
      if (found != 0) tokens[e.request == ids[0] ? 0 : 1].push_back(e.token);
    }
  }
  EXPECT_EQ(tokens[0], whole.tokens);
  EXPECT_EQ(tokens[1], whole.tokens);
}

TEST(CApiRequests, a_submitted_request_goes_on_while_another_is_generated_and_keeps_its_events) {
  const LoadedModel model(2);
  const std::vector<int32_t> prompt = tokens_of(model, "the", RIDGE_TOKENIZE_BOS);
  const ridge_request five = greedy(prompt, 5), nine = greedy(prompt, 9);
  int64_t id = 0;
  ASSERT_EQ(ridge_submit(model, &five, &id), RIDGE_OK);
  Collected generated;
  ASSERT_EQ(ridge_generate(model, &nine, collect, &generated, nullptr), RIDGE_OK) << ridge_error_message();
  ASSERT_EQ(generated.tokens.size(), 9u);
  std::vector<int32_t> tokens;
  int finish = RIDGE_FINISH_NONE;
  for (int found = 1; found != 0;) {
    ridge_event e = RIDGE_EVENT_INIT;
    ASSERT_EQ(ridge_next_event(model, &e, &found), RIDGE_OK);
    if (found == 0) break;
    EXPECT_EQ(e.request, id);
    tokens.push_back(e.token), finish = e.finish;
  }
  EXPECT_EQ(tokens, std::vector<int32_t>(generated.tokens.begin(), generated.tokens.begin() + 5));
  EXPECT_EQ(finish, RIDGE_FINISH_LENGTH);
  EXPECT_EQ(ridge_cancel(model, id), RIDGE_NOT_FOUND);
}

TEST(CApiRequests, a_callback_stops_its_answer_and_the_model_goes_on) {
  const LoadedModel model;
  const std::vector<int32_t> prompt = tokens_of(model, "the", RIDGE_TOKENIZE_BOS);
  const ridge_request request = greedy(prompt, 50);
  Collected c;
  c.stop_at = 3;
  ridge_answer answer = RIDGE_ANSWER_INIT;
  EXPECT_EQ(ridge_generate(model, &request, collect, &c, &answer), RIDGE_CANCELLED);
  EXPECT_TRUE(says("returned 7 at token 3"));
  EXPECT_EQ(answer.tokens, 3);
  EXPECT_EQ(answer.finish, RIDGE_FINISH_NONE);
  size_t running = 9;
  EXPECT_EQ(ridge_step(model, nullptr, &running), RIDGE_OK);
  EXPECT_EQ(running, 0u);
  EXPECT_EQ(ridge_generate(model, &request, nullptr, nullptr, nullptr), RIDGE_OK);
}

TEST(CApiRequests, an_exception_of_a_callback_does_not_cross) {
  const LoadedModel model;
  const std::vector<int32_t> prompt = tokens_of(model, "the", RIDGE_TOKENIZE_BOS);
  const ridge_request request = greedy(prompt, 4);
  const auto throws = [](void*, const ridge_token*) -> int { throw std::string("ours"); };
  EXPECT_EQ(ridge_generate(model, &request, throws, nullptr, nullptr), RIDGE_INTERNAL);
  EXPECT_TRUE(says("exception"));
  EXPECT_EQ(ridge_generate(model, &request, nullptr, nullptr, nullptr), RIDGE_OK);
}

TEST(CApiRequests, a_cancelled_request_has_no_more_events_and_cannot_be_cancelled_twice) {
  const LoadedModel model(2);
  const std::vector<int32_t> prompt = tokens_of(model, "the", RIDGE_TOKENIZE_BOS);
  const ridge_request request = greedy(prompt, 20);
  int64_t gone = 0, stays = 0;
  ASSERT_EQ(ridge_submit(model, &request, &gone), RIDGE_OK);
  ASSERT_EQ(ridge_submit(model, &request, &stays), RIDGE_OK);
  size_t waiting = 0, running = 0;
  ASSERT_EQ(ridge_step(model, &waiting, &running), RIDGE_OK);
  EXPECT_EQ(waiting, 2u);
  EXPECT_EQ(running, 2u);
  EXPECT_EQ(ridge_cancel(model, gone), RIDGE_OK);
  EXPECT_EQ(ridge_cancel(model, gone), RIDGE_NOT_FOUND);
  EXPECT_TRUE(says("id is " + std::to_string(gone)));
  ridge_event e = RIDGE_EVENT_INIT;
  int found = 0;
  ASSERT_EQ(ridge_next_event(model, &e, &found), RIDGE_OK);
  EXPECT_EQ(found, 1);
  EXPECT_EQ(e.request, stays);
  ASSERT_EQ(ridge_next_event(model, &e, &found), RIDGE_OK);
  EXPECT_EQ(found, 0);
}

TEST(CApiRequests, what_cannot_run_is_refused_before_it_runs) {
  const LoadedModel model;
  int64_t id = 0;
  const std::vector<int32_t> fine = {1, 2}, outside = {1, 264}, full(128, 1);
  const auto refused = [&](const ridge_request& r, const char* part) {
    EXPECT_EQ(ridge_submit(model, &r, &id), RIDGE_INVALID_ARGUMENT);
    EXPECT_EQ(id, 0);
    return says(part);
  };
  EXPECT_TRUE(refused(greedy({}, 1), "no tokens"));
  EXPECT_TRUE(refused(greedy(outside, 1), "prompt token 1 is 264"));
  EXPECT_TRUE(refused(greedy(full, 1), "128 tokens, the context holds 128"));
  EXPECT_TRUE(refused(greedy(fine, 0), "max_new_tokens is 0"));
  ridge_request r = greedy(fine, 1);
  r.prompt = nullptr;
  EXPECT_TRUE(refused(r, "request->prompt is NULL"));
  const int32_t end = 300;
  r = greedy(fine, 1), r.end_ids = &end, r.end_count = 1;
  EXPECT_TRUE(refused(r, "end_ids[0] is 300"));
  ridge_sampling s = RIDGE_SAMPLING_INIT;
  r = greedy(fine, 1), r.sampling = &s;
  s.top_p = 1.5f;
  EXPECT_TRUE(refused(r, "top_p is 1.5"));
  s = RIDGE_SAMPLING_INIT, s.temperature = -1;
  EXPECT_TRUE(refused(r, "temperature is -1"));
  s = RIDGE_SAMPLING_INIT, s.bias_count = 1;
  EXPECT_TRUE(refused(r, "bias_ids is NULL"));
  s = RIDGE_SAMPLING_INIT, s.struct_size = 8;
  EXPECT_TRUE(refused(r, "sampling->struct_size is 8"));
}

TEST(CApiRequests, sampling_parameters_reach_the_draw) {
  const LoadedModel model;
  const std::vector<int32_t> prompt = tokens_of(model, "the", RIDGE_TOKENIZE_BOS);
  ridge_request request = greedy(prompt, 8);
  ridge_sampling s = RIDGE_SAMPLING_INIT;
  request.sampling = &s;
  const auto draw = [&] {
    Collected c;
    EXPECT_EQ(ridge_generate(model, &request, collect, &c, nullptr), RIDGE_OK) << ridge_error_message();
    return c.tokens;
  };
  s.temperature = 2, s.seed = 1;
  const auto first = draw(), again = draw();
  s.seed = 2;
  EXPECT_EQ(first, again);
  EXPECT_NE(first, draw());
  const int32_t wanted = 'q';
  const float much = 1000;
  s.bias_ids = &wanted, s.bias = &much, s.bias_count = 1;
  EXPECT_EQ(draw(), std::vector<int32_t>(8, 'q'));
}

TEST(CApiRequests, an_end_token_ends_the_answer_and_gives_no_text) {
  const LoadedModel model;
  const std::vector<int32_t> prompt = tokens_of(model, "the", RIDGE_TOKENIZE_BOS);
  ridge_request request = greedy(prompt, 20);
  const int32_t eos = 256;
  const float much = 1000;
  ridge_sampling s = RIDGE_SAMPLING_INIT;
  s.bias_ids = &eos, s.bias = &much, s.bias_count = 1;
  request.sampling = &s;
  Collected goes_on, ends;
  ASSERT_EQ(ridge_generate(model, &request, collect, &goes_on, nullptr), RIDGE_OK);
  EXPECT_EQ(goes_on.tokens.size(), 20u);
  request.ignore_model_end = 0;
  ASSERT_EQ(ridge_generate(model, &request, collect, &ends, nullptr), RIDGE_OK);
  EXPECT_EQ(ends.tokens, std::vector<int32_t>{256});
  EXPECT_EQ(ends.finish, RIDGE_FINISH_END);
  EXPECT_EQ(ends.text, "");
}

TEST(CApiRequests, threads_generate_at_once_and_each_gets_its_own_tokens) {
  const LoadedModel model(2);
  const std::vector<int32_t> prompts[] = {tokens_of(model, "the", 0), tokens_of(model, "a thing", 0)};
  Collected alone[2], together[2];
  for (int i = 0; i < 2; ++i) {
    const ridge_request r = greedy(prompts[i], 24);
    ASSERT_EQ(ridge_generate(model, &r, collect, &alone[i], nullptr), RIDGE_OK);
  }
  EXPECT_NE(alone[0].tokens, alone[1].tokens);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      const ridge_request r = greedy(prompts[i], 24);
      EXPECT_EQ(ridge_generate(model, &r, collect, &together[i], nullptr), RIDGE_OK) << ridge_error_message();
    });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(together[i].tokens, alone[i].tokens);
}

}  // namespace
}  // namespace ridge
