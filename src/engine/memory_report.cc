#include "engine/memory_report.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "engine/memory_plan.h"

namespace ridge {

namespace {

/// By page size: what the sequences of the fullest moment would have left unused.
std::vector<TailWaste> tails_of(const std::vector<int64_t>& lengths, int64_t in_use) {
  std::vector<int64_t> sizes = {16, 32, 64, 128, 256};
  sizes.push_back(in_use);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<TailWaste> tails;
  for (const int64_t size : sizes) {
    TailWaste t{size, 0};
    for (const int64_t length : lengths) t.tokens += round_up(length, size) - length;
    tails.push_back(t);
  }
  return tails;
}

/// Weights by whether they are quantized, and what the slabs that small ones share have left.
void add_weights(const WeightStore& weights, const MemoryPlan& plan, MemoryReport* r) {
  int64_t quantized = 0, plain = 0;
  for (const LoadedTensor& t : weights.loaded())
    (is_block_quantized(t.tensor.dtype) ? quantized : plain) += t.tensor.bytes();
  r->items.push_back({"weights, quantized", plan.weights - plan.unquantized, quantized});
  r->items.push_back({"weights, unquantized", plan.unquantized, plain});
  r->items.push_back({"weights, between them", 0, weights.held_bytes() - quantized - plain});
}

}  // namespace

Result<MemoryReport> memory_report(const Model& model, const InferenceEngine& engine, const Device& device) {
  RIDGE_ASSIGN(const MemoryPlan plan, plan_memory(model.weights().file(), model.config(), engine.options()));
  const PlanBytes plans = engine.plan_bytes_by_kind();
  MemoryReport r;
  add_weights(model.weights(), plan, &r);
  r.items.push_back({"KV pages", plan.kv, engine.kv().bytes()});
  r.items.push_back({"activations", 0, plans.activations});
  r.items.push_back({"workspaces", 0, plans.workspaces});
  r.items.push_back({"stream and sampled ids", 0, plans.stream});
  for (const MemoryItem& i : r.items) r.held += i.held;
  r.apart = {{"recorded steps, by the device's free memory", 0, plans.graphs},
             {"staging, of the host", 0, plans.staging}};
  r.device = device.bytes_in_use();
  const KvUse peak = engine.kv_peak();
  r.pages = engine.kv().total_pages(), r.page_size = engine.kv().page_size();
  r.page_bytes = r.pages > 0 ? engine.kv().bytes() / r.pages : 0;
  r.pages_used = peak.pages;
  r.tails = tails_of(peak.lengths, r.page_size);
  r.tail_tokens = peak.tail_tokens;
  return r;
}

Result<MemoryReport> memory_report(const Session& session) {
  return memory_report(session.model(), session.engine(), session.device());
}

std::string memory_text(const MemoryReport& r) {
  std::string out;
  const auto add = [&](const std::vector<MemoryItem>& items) {
    for (const MemoryItem& i : items)
      out += text(i.what, ": ", i.planned > 0 ? bytes_text(double(i.planned)) + " planned, " : "",
                  bytes_text(double(i.held)), " held\n");
  };
  add(r.items);
  out += text("all of these: ", bytes_text(double(r.held)));
  if (r.device >= 0)
    out += text("; the device's pool has ", bytes_text(double(r.device)), " in use, ",
                bytes_text(double(r.device - r.held)), " more: allocations are rounded up there");
  out += "\n";
  add(r.apart);
  out += text("KV pages of ", r.page_size, " tokens, ", bytes_text(double(r.page_bytes)), ": ", r.pages,
              " reserved, ", r.pages_used, " used at most, then with room for ", r.tail_tokens,
              " tokens behind the last ones; by page size:");
  for (const TailWaste& t : r.tails)
    out += text(
        " ", t.page_size, ": ", t.tokens, " (",
        bytes_text(double(t.tokens) * double(r.page_bytes) / double(std::max<int64_t>(1, r.page_size))), ")");
  return out + "\n";
}

}  // namespace ridge
