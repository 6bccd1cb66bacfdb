#include "engine/memory_report.h"

#include "base/text.h"
#include "engine/memory_plan.h"

namespace ridge {

Result<MemoryReport> memory_report(const Session& session) {
  const InferenceEngine& engine = session.engine();
  RIDGE_ASSIGN(const MemoryPlan plan,
               plan_memory(session.file(), session.model().config(), engine.options()));
  const PlanBytes plans = engine.plan_bytes_by_kind();
  MemoryReport r;
  r.items = {{"weights", plan.weights, session.model().weights().held_bytes()},
             {"KV pages", plan.kv, engine.kv().bytes()},
             {"activations", 0, plans.activations},
             {"workspaces", 0, plans.workspaces}};
  for (const MemoryItem& i : r.items) r.held += i.held;
  r.items.push_back({"staging, of the host", 0, plans.staging});
  r.device = session.device().bytes_in_use();
  r.pages = engine.kv().total_pages();
  r.page_bytes = r.pages > 0 ? engine.kv().bytes() / r.pages : 0;
  r.pages_used = engine.kv_peak().pages, r.tail_tokens = engine.kv_peak().tail_tokens;
  return r;
}

std::string memory_text(const MemoryReport& r) {
  std::string out;
  for (const MemoryItem& i : r.items)
    out += text(i.what, ": ", i.planned > 0 ? bytes_text(double(i.planned)) + " planned, " : "",
                bytes_text(double(i.held)), " held\n");
  out += text("all on the device: ", bytes_text(double(r.held)));
  if (r.device >= 0)
    out += text("; it has ", bytes_text(double(r.device)), " in use, ", bytes_text(double(r.device - r.held)),
                " for streams and loading");
  out += text("\nKV pages of ", bytes_text(double(r.page_bytes)), ": ", r.pages, " reserved, ", r.pages_used,
              " used at most, then with ", r.tail_tokens, " tokens of room behind the last ones\n");
  return out;
}

}  // namespace ridge
