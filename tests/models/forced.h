#pragma once
// A given text through a model, with the logits of every position: what a comparison of formats needs and the
// engine, which samples, does not offer.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/kv_pool.h"
#include "models/model.h"

namespace ridge {

class ForcedText {
 public:
  ForcedText(Device& device, const Model& model, const StepFormats& formats, DType kv, int64_t context)
      : device_(device), model_(model), formats_(formats), stream_(device.create_stream().take()) {
    KvOptions o;
    o.k_type = o.v_type = kv;
    o.context = context, o.pages = (context + o.page_size - 1) / o.page_size;
    auto pool = KvPool::create(device, model.kv_shapes(), o);
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    pool_ = pool.take();
  }

  /// Feeds `ids` after those fed before. [ids, vocab] f32, valid until the next call; absent on an error.
  Tensor logits(const std::vector<int32_t>& ids) {
    prepare(static_cast<int64_t>(ids.size()));
    fill(ids);
    const Status s = plan_->run(*stream_);
    EXPECT_TRUE(s.ok()) << s.message();
    fed_ += static_cast<int64_t>(ids.size());
    return s.ok() ? plan_->find("logits") : Tensor();
  }

  /// The same call by call; `after(label, call)` sees each call when its outputs have just been written.
  template <class After>
  void trace(const std::vector<int32_t>& ids, const After& after) {
    prepare(static_cast<int64_t>(ids.size()));
    fill(ids);
    std::vector<std::byte> workspace(static_cast<size_t>(plan_->workspace_bytes()) + 64);
    stream_->set_workspace(workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64),
                           plan_->workspace_bytes());
    for (const PlannedCall& c : plan_->calls()) {
      const Status s = c.call.op->run(c.selection, *stream_, c.call.args.get());
      ASSERT_TRUE(s.ok()) << c.call.label << ": " << s.message();
      after(c.call);
    }
    fed_ += static_cast<int64_t>(ids.size());
  }

 private:
  void prepare(int64_t tokens) {
    if (plan_ != nullptr && planned_ == tokens) return;
    plan_ = std::make_unique<StepPlan>(device_);
    BatchShape batch;
    batch.prefills = 1, batch.prefill_tokens = batch.logit_rows = planned_ = tokens;
    model_.write_step(*plan_, batch, pool_.pages(), formats_);
    const Status s = plan_->finish({});
    ASSERT_TRUE(s.ok()) << s.message();
  }
  void fill(const std::vector<int32_t>& ids) {
    const auto n = static_cast<int64_t>(ids.size());
    std::copy(ids.begin(), ids.end(), plan_->find("token_ids").as<int32_t>());
    const auto count_from = [&](const char* name, int64_t first, int64_t count) {
      auto* at = plan_->find(name).as<int64_t>();
      std::iota(at, at + count, first);
    };
    count_from("positions", fed_, n);
    count_from("slots", fed_, n);  // page p of the only sequence is page p of the pool
    count_from("logit_rows", 0, n);
    auto* pages = plan_->find("prefill_page_table").as<int32_t>();
    std::iota(pages, pages + pool_.pages().max_pages, 0);
    plan_->find("prefill_lengths").as<int64_t>()[0] = fed_ + n;
    plan_->find("prefill_query_start").as<int64_t>()[0] = 0;
    plan_->find("prefill_query_start").as<int64_t>()[1] = n;
  }

  Device& device_;
  const Model& model_;
  StepFormats formats_;
  std::unique_ptr<Stream> stream_;
  KvPool pool_;
  std::unique_ptr<StepPlan> plan_;
  int64_t planned_ = 0, fed_ = 0;
};

inline double log_sum_exp(const float* logits, int64_t n) {
  double top = logits[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) top = std::max<double>(top, logits[i]);
  for (int64_t i = 0; i < n; ++i) sum += std::exp(logits[i] - top);
  return top + std::log(sum);
}

/// KL(p || q) in nats of the distributions that two rows of logits stand for, in double precision.
inline double kl_divergence(const float* p, const float* q, int64_t n) {
  const double lp = log_sum_exp(p, n), lq = log_sum_exp(q, n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double log_p = p[i] - lp;
    sum += std::exp(log_p) * (log_p - (q[i] - lq));
  }
  return sum;
}

}  // namespace ridge
