#pragma once
// ForcedText: a given text through a model with the logits of every position, and call by call: what
// comparing formats, instruction sets or models needs and the engine, which samples, does not offer.

#include <functional>
#include <vector>

#include "engine/kv_pool.h"
#include "models/model.h"

namespace ridge {

struct ForcedOptions {
  StepFormats formats;
  DType kv = kF16;
  int64_t context = 0;  // tokens in all
  PlanOptions plan;
};

/// One sequence, fed in chunks. Device and model must outlive it.
class ForcedText {
 public:
  /// Errors: those of KvPool and of the device.
  static Result<ForcedText> create(Device& device, const Model& model, const ForcedOptions& options);

  /// Feeds `ids` after those fed before: logits of each, [ids, vocab] f32, valid until the next call. `after`
  /// sees each call of the plan when it is done and its outputs are still there. Errors: kInvalidArgument for
  /// no ids, an id outside the vocabulary, or more than the context holds; a declined call.
  Result<Tensor> feed(const std::vector<int32_t>& ids,
                      const std::function<void(const PlannedCall& call)>& after = nullptr);

 private:
  ForcedText(Device& device, const Model& model, const ForcedOptions& options)
      : device_(&device), model_(&model), options_(options) {}
  Status check(const std::vector<int32_t>& ids) const;
  Status prepare(int64_t tokens);
  void fill(const std::vector<int32_t>& ids);

  Device* device_;
  const Model* model_;
  ForcedOptions options_;
  std::unique_ptr<Stream> stream_;
  KvPool pool_;
  std::unique_ptr<StepPlan> plan_;
  int64_t planned_ = 0, fed_ = 0;  // tokens of plan_; tokens in the cache
};

}  // namespace ridge
