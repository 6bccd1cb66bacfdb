#pragma once
// Runs requests to their end and keeps all that the engine said.

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engine/engine.h"
#include "models/tiny_model.h"

namespace ridge {

struct Answer {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;  // of each token, [vocab]
  Finish finish = Finish::kNone;
  Status error;
};

inline std::unique_ptr<InferenceEngine> engine_for(TinyModel& tiny, const EngineOptions& options) {
  auto made = InferenceEngine::create(*tiny.device, *tiny.model, options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? made.take() : nullptr;
}

/// One step's events, put with their answers.
inline bool take_step(InferenceEngine& engine, std::map<int64_t, Answer>* answers) {
  auto events = engine.step();
  EXPECT_TRUE(events.ok()) << events.status().message();
  if (!events.ok()) return false;
  const Tensor logits = engine.last_logits();
  for (size_t i = 0; i < events->size(); ++i) {
    const TokenEvent& e = (*events)[i];
    Answer& a = (*answers)[e.request];
    a.finish = e.finish, a.error = e.error;
    if (e.finish == Finish::kError) continue;
    a.tokens.push_back(e.token);
    const auto* row = logits.row<float>(static_cast<int64_t>(i));
    a.logits.emplace_back(row, row + logits.dim(1));
  }
  return true;
}

/// Submits `requests`, `gap` steps between each, and runs until idle. Answers in the order of the requests.
inline std::vector<Answer> generate(InferenceEngine& engine, const std::vector<Request>& requests,
                                    int gap = 0) {
  std::map<int64_t, Answer> answers;
  std::vector<int64_t> ids;
  for (const Request& r : requests) {
    const auto id = engine.submit(r);
    EXPECT_TRUE(id.ok()) << id.status().message();
    ids.push_back(id.ok() ? *id : -1);
    for (int i = 0; i < gap; ++i)
      if (!take_step(engine, &answers)) return {};
  }
  for (int steps = 0; !engine.idle(); ++steps) {
    EXPECT_LT(steps, 10000) << "the engine does not come to an end";
    if (steps >= 10000 || !take_step(engine, &answers)) return {};
  }
  std::vector<Answer> out;
  for (const int64_t id : ids) out.push_back(answers[id]);
  return out;
}

inline std::vector<int32_t> random_prompt(int64_t length, uint64_t seed, int64_t vocab = 300) {
  Random random(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(random.below(vocab)));
  return ids;
}

inline Request request(std::vector<int32_t> prompt, int64_t new_tokens, SamplingParams sampling = {}) {
  Request r;
  r.prompt = std::move(prompt), r.max_new_tokens = new_tokens, r.sampling = std::move(sampling);
  return r;
}

/// The same tokens, and every logit the same bit for bit.
inline void expect_same(const Answer& got, const Answer& want, const std::string& what) {
  ASSERT_TRUE(got.error.ok()) << what << ": " << got.error.message();
  EXPECT_EQ(got.tokens, want.tokens) << what;
  ASSERT_EQ(got.logits.size(), want.logits.size()) << what;
  for (size_t t = 0; t < want.logits.size(); ++t)
    for (size_t v = 0; v < want.logits[t].size(); ++v)
      ASSERT_EQ(std::memcmp(&got.logits[t][v], &want.logits[t][v], 4), 0)
          << what << ": logit " << v << " of token " << t << " is " << got.logits[t][v] << ", alone "
          << want.logits[t][v];
}

}  // namespace ridge
