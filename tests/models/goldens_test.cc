// Real models against the goldens of tests/goldens (their README says how those were made and how far they
// are to be trusted). The files come by environment: RIDGE_SMOLLM2, RIDGE_GEMMA3. Without them the tests are
// skipped. RIDGE_TEST_DEVICE: another device than the CPU.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/forced.h"
#include "engine/generate.h"
#include "models/distributions.h"
#include "runtime/backends.h"

namespace ridge {
namespace {

struct GoldenModel {
  const char* name;      // folder of tests/goldens
  const char* variable;  // where the file is
  double logit_bound;    // largest |logit - golden| allowed with f32 activations and KV
  double kl_bound;       // largest mean KL per token of int8 activations and f16 KV, in nats
};
std::ostream& operator<<(std::ostream& out, const GoldenModel& m) {
  return out << m.name;
}

/// One file loaded once for all tests of a model; loading takes longer than most of them.
struct Loaded {
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
};
Loaded* loaded(const GoldenModel& golden) {
  static std::map<std::string, Loaded> all;
  const char* path = std::getenv(golden.variable);
  if (path == nullptr) return nullptr;
  Loaded& l = all[golden.name];
  if (l.model == nullptr) {
    Loaded fresh;
    auto file = GgufFile::open(path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok()) return nullptr;
    fresh.file = std::make_unique<GgufFile>(file.take());
    DeviceOptions on;
    if (const char* backend = std::getenv("RIDGE_TEST_DEVICE")) on.backend = backend;
    auto device = create_device(on);
    EXPECT_TRUE(device.ok()) << device.status().message();
    if (!device.ok()) return nullptr;
    fresh.device = device.take();
    auto model = load_model(*fresh.device, *fresh.file);
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (!model.ok()) return nullptr;
    fresh.model = model.take();
    all[golden.name] = std::move(fresh);
  }
  return &all[golden.name];
}

class Goldens : public testing::TestWithParam<GoldenModel> {
 protected:
  void SetUp() override {
    if (std::getenv(GetParam().variable) == nullptr)
      GTEST_SKIP() << "set " << GetParam().variable << " to the model's file to run this";
    l_ = loaded(GetParam());
    ASSERT_NE(l_, nullptr);
    std::ifstream in(text(RIDGE_TEST_DATA, "/goldens/", GetParam().name, "/tokens.json"));
    golden_ = nlohmann::json::parse(in);
  }
  const Model& model() const { return *l_->model; }

  Loaded* l_ = nullptr;
  nlohmann::json golden_;
};

/// Largest |logit - golden| over the sampled ids and the log-sum-exp.
double difference(const std::vector<float>& logits, const nlohmann::json& want, const nlohmann::json& ids) {
  double worst = std::fabs(log_sum_exp(logits.data(), static_cast<int64_t>(logits.size())) -
                           want.at("logsumexp").get<double>());
  for (size_t i = 0; i < ids.size(); ++i)
    worst = std::max(worst, std::fabs(logits[ids[i].get<size_t>()] - want.at("logits")[i].get<double>()));
  return worst;
}

TEST_P(Goldens, f32_activations_give_the_tokens_of_the_reference_for_every_prompt) {
  EngineOptions o;
  o.kv.k_type = o.kv.v_type = kF32;
  o.kv.context = 1024;
  o.formats.activations = ActivationFormat::kF32;
  o.keep_logits = true;
  const auto& prompts = golden_.at("prompts");
  o.max_sequences = static_cast<int64_t>(prompts.size());
  std::vector<Request> requests;
  for (const auto& p : prompts) {
    EXPECT_TRUE(p.at("near_ties").empty()) << "the golden itself is unsure here: compare logits instead";
    requests.push_back(request(p.at("prompt_ids"), static_cast<int64_t>(p.at("generated_ids").size())));
  }
  ASSERT_GE(requests.size(), 8u);
  auto engine = InferenceEngine::create(*l_->device, model(), o);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const auto answers = generate(**engine, requests);
  ASSERT_EQ(answers.size(), prompts.size());
  double worst = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    SCOPED_TRACE(prompts[i].at("name").get<std::string>());
    ASSERT_TRUE(answers[i].error.ok()) << answers[i].error.message();
    EXPECT_EQ(answers[i].tokens, prompts[i].at("generated_ids").get<std::vector<int32_t>>());
    const auto& ids = golden_.at("vocabulary_ids");
    const double first = difference(answers[i].logits.front(), prompts[i].at("first"), ids),
                 last = difference(answers[i].logits.back(), prompts[i].at("last"), ids);
    EXPECT_LE(first, GetParam().logit_bound);
    EXPECT_LE(last, GetParam().logit_bound);
    worst = std::max({worst, first, last});
  }
  std::printf("%s: %zu prompts, max |logit - golden| %.3g\n", GetParam().name, answers.size(), worst);
}

TEST_P(Goldens, the_residual_stream_follows_the_reference_layer_by_layer) {
  auto forced = ForcedText::create(*l_->device, model(), {{ActivationFormat::kF32}, kF32, 64, {}});
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  const auto& want = golden_.at("layer_trace");
  size_t layer = 0;
  const auto ids = golden_.at("layer_trace_ids").get<std::vector<int32_t>>();
  const auto fed = forced->feed(ids, [&](const PlannedCall& c) {
    const std::string& label = c.call.label;
    const bool residual = label.size() > 12 && label.compare(label.size() - 12, 12, "mlp residual") == 0;
    if (label != "embedding" && !residual) return;
    ASSERT_LT(layer, want.size());
    Tensor x = operand_of(c.call, "y");
    std::vector<float> here(static_cast<size_t>(x.elements()));
    ASSERT_TRUE(l_->device->download(here.data(), x.data, x.elements() * 4).ok());
    x.data = here.data();
    const int64_t last = x.dim(0) - 1;
    double l2 = 0;
    for (int64_t i = 0; i < x.dim(1); ++i) l2 += x.f64(last, i) * x.f64(last, i);
    l2 = std::sqrt(l2);
    const double norm = want[layer].at("l2").get<double>();
    EXPECT_NEAR(l2, norm, 1e-4 * norm) << "after " << label;
    const auto& values = want[layer].at("values");
    for (size_t v = 0; v < values.size(); ++v)
      EXPECT_NEAR(x.f64(last, static_cast<int64_t>(v)), values[v].get<double>(), 1e-5 * norm)
          << "after " << label;
    ++layer;
  });
  ASSERT_TRUE(fed.ok()) << fed.status().message();
  EXPECT_EQ(layer, want.size());
}

TEST_P(Goldens, int8_activations_and_f16_kv_stay_close_to_f32_on_a_given_text) {
  const auto& forced = golden_.at("teacher_forced");
  const auto ids = forced.at("ids").get<std::vector<int32_t>>();
  const auto n = static_cast<int64_t>(ids.size()), vocab = model().config().vocab;
  auto exact = ForcedText::create(*l_->device, model(), {{ActivationFormat::kF32}, kF32, n, {}});
  auto fast = ForcedText::create(*l_->device, model(), {{ActivationFormat::kInt8}, kF16, n, {}});
  ASSERT_TRUE(exact.ok() && fast.ok());
  constexpr int64_t kChunk = 32;  // two tables of logits of a whole text would be large
  double nll = 0, kl = 0, worst_kl = 0, worst = 0;
  int64_t argmax_kept = 0;
  for (int64_t first = 0; first < n; first += kChunk) {
    const std::vector<int32_t> chunk(ids.begin() + first, ids.begin() + std::min(n, first + kChunk));
    const auto exact_logits = exact->feed(chunk), fast_logits = fast->feed(chunk);
    ASSERT_TRUE(exact_logits.ok() && fast_logits.ok());
    const Tensor p = *exact_logits, q = *fast_logits;
    for (int64_t r = 0; r < static_cast<int64_t>(chunk.size()); ++r) {
      const float *a = p.row<float>(r), *b = q.row<float>(r);
      const auto t = static_cast<size_t>(first + r);
      const double sum = log_sum_exp(a, vocab);
      worst = std::max(worst, std::fabs(sum - forced.at("logsumexp")[t].get<double>()));
      const auto top = std::max_element(a, a + vocab) - a;
      EXPECT_EQ(top, forced.at("argmax")[t].get<int64_t>()) << "position " << t;
      worst = std::max(worst, std::fabs(a[top] - forced.at("argmax_logit")[t].get<double>()));
      if (t + 1 < ids.size()) {
        const double logit = a[ids[t + 1]];
        worst = std::max(worst, std::fabs(logit - forced.at("next_logit")[t].get<double>()));
        nll += sum - logit;
      }
      const double d = kl_divergence(a, b, vocab);
      kl += d, worst_kl = std::max(worst_kl, d);
      argmax_kept += std::max_element(b, b + vocab) - b == top;
    }
  }
  kl /= static_cast<double>(n), nll /= static_cast<double>(n - 1);
  std::printf(
      "%s: f32 against the golden: max |difference| %.3g, mean NLL %.6f; int8 and f16 KV against f32: "
      "mean KL %.3g nats a token, worst %.3g, same argmax %.1f %%\n",
      GetParam().name, worst, nll, kl, worst_kl,
      100.0 * static_cast<double>(argmax_kept) / static_cast<double>(n));
  EXPECT_LE(worst, GetParam().logit_bound);
  EXPECT_NEAR(nll, forced.at("mean_nll").get<double>(), 1e-3);
  EXPECT_GT(kl, 0) << "the two runs are the same run";
  EXPECT_LE(kl, GetParam().kl_bound);
}

// Bounds: twice what was measured with AVX-512: 5.1e-4 and 7.3e-5 (the golden's own float32 error is up
// to 2.1e-4 and 3.8e-4); KL 0.0044 and 0.0026 nats a token.
INSTANTIATE_TEST_SUITE_P(Real, Goldens,
                         testing::Values(GoldenModel{"smollm2", "RIDGE_SMOLLM2", 1e-3, 0.009},
                                         GoldenModel{"gemma3", "RIDGE_GEMMA3", 2e-4, 0.006}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace ridge
