#include "lab/workload.h"

#include <algorithm>
#include <set>

namespace ridge {

const char* fixed_text() {
  return "Rivers carry more than water. In a year even a small one moves tons of sand and clay from the "
         "hills "
         "down to the plain, and when it floods it leaves them on the fields. Farmers learned early to wait "
         "for "
         "that gift: they counted the days between the first swallow and the first flood, cut the numbers "
         "into "
         "bone, and sowed when the water had gone. A list of prices from one such town names barley, oil, "
         "wool "
         "and copper; next to copper somebody wrote, in another hand, that it was too dear.\n";
}

/// The types of the matrices.
static std::string weight_types(const GgufFile& file) {
  std::set<std::string> types;
  for (const GgufTensor& t : file.tensors())
    if (t.shape.rank() == 2) types.insert(t.type->name);
  std::string out;
  for (const std::string& t : types) out += text(out.empty() ? "" : " + ", t);
  return out;
}

Workload workload_of(const Session& session, const EngineOptions& options, const std::string& device) {
  Workload w;
  const std::string& path = session.file().path();
  w.model = path.substr(path.rfind('/') + 1);
  w.weight_format = weight_types(session.file());
  w.kv_format = options.kv.k_type == kI8 ? "q8" : dtype_name(options.kv.k_type);
  w.activation_format = activation_format_name(options.formats.activations);
  w.device = device;
  for (const std::string& f : options.plan.fusions) w.fusions += text(w.fusions.empty() ? "" : ", ", f);
  w.batch = options.max_sequences, w.prefill_chunk = options.prefill_tokens;
  return w;
}

Result<std::vector<int32_t>> plain_prompt(const Session& session, int64_t tokens) {
  if (tokens < 1) return invalid_argument("prompt tokens are ", tokens, ": use 1 or more");
  RIDGE_ASSIGN(std::vector<int32_t> ids, session.encode_text(fixed_text()));
  const size_t once = ids.size(), wanted = static_cast<size_t>(tokens);
  // What encode() puts in front belongs at the very start alone.
  const size_t first = session.tokenizer().bos() >= 0 && ids.front() == session.tokenizer().bos() ? 1 : 0;
  while (ids.size() < wanted) ids.push_back(ids[first + (ids.size() - first) % (once - first)]);
  ids.resize(wanted);
  return ids;
}

}  // namespace ridge
