#include "capi/model.h"

#include "ops/any_operator.h"

namespace ridge::capi {

Result<DType> kv_format(std::string_view name) {
  if (name == "f32") return kF32;
  if (name == "f16") return kF16;
  if (name == "bf16") return kBF16;
  if (name == "q8") return kI8;
  return invalid_argument("options->kv is ", printable(name), ": use f32, f16, bf16 or q8");
}

namespace {

/// All fused operators but those named; "all" names every one.
Result<std::set<std::string>> fusions_without(const char* names) {
  std::set<std::string> fusions;
  for (const AnyOperator* op : operators())
    if (!op->replaces().empty()) fusions.insert(op->name());
  std::string_view rest = names == nullptr ? "" : names;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string name(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    if (name == "all")
      fusions.clear();
    else if (fusions.erase(name) == 0 && find_operator(name) == nullptr)
      return invalid_argument("options->without_fusions names ", printable(name),
                              ": no operator has that name");
  }
  return fusions;
}

Status check_not_negative(const char* name, int64_t value) {
  return value >= 0 ? Status()
                    : invalid_argument("options->", name, " is ", value, ": use 0 (default) or more");
}

Result<SessionOptions> session_options(const ridge_model_options& o) {
  RIDGE_TRY(check_not_negative("threads", o.threads));
  RIDGE_TRY(check_not_negative("max_sequences", o.max_sequences));
  RIDGE_TRY(check_not_negative("context", o.context));
  RIDGE_TRY(check_not_negative("page_size", o.page_size));
  RIDGE_TRY(check_not_negative("prefill_tokens", o.prefill_tokens));
  SessionOptions s;
  s.cpu.threads = o.threads;
  if (o.isa != nullptr) {
    RIDGE_ASSIGN(s.cpu.isa, parse_isa(o.isa));
  }
  if (o.assume_pre != nullptr) s.assume_pre = o.assume_pre;
  EngineOptions& e = s.engine;
  const std::string_view activations = o.activations == nullptr ? "int8" : o.activations;
  if (activations != "int8" && activations != "f32")
    return invalid_argument("options->activations is ", printable(activations), ": use int8 or f32");
  e.formats.activations = activations == "f32" ? ActivationFormat::kF32 : ActivationFormat::kInt8;
  RIDGE_ASSIGN(e.kv.k_type, kv_format(o.kv != nullptr ? o.kv : activations == "f32" ? "f32" : "f16"));
  e.kv.v_type = e.kv.k_type;
  e.kv.context = o.context;
  if (o.page_size > 0) e.kv.page_size = o.page_size;
  if (o.max_sequences > 0) e.max_sequences = o.max_sequences;
  if (o.prefill_tokens > 0) e.prefill_tokens = o.prefill_tokens;
  RIDGE_ASSIGN(e.plan.fusions, fusions_without(o.without_fusions));
  return s;
}

ridge_model_info info_of(Session& session) {
  ridge_model_info i = RIDGE_MODEL_INFO_INIT;
  const DecoderConfig& c = session.model().config();
  i.architecture = c.architecture.c_str();
  i.layers = c.layers, i.hidden = c.hidden, i.heads = c.heads, i.kv_heads = c.kv_heads, i.vocab = c.vocab;
  i.context = session.engine().options().kv.context;
  i.weight_bytes = session.model().weights().bytes(), i.kv_bytes = session.engine().kv().bytes();
  i.threads = session.device().team().threads();
  i.bos = session.tokenizer().bos(), i.eos = session.tokenizer().eos();
  i.has_chat_template = session.has_template() ? 1 : 0;
  return i;
}

}  // namespace
}  // namespace ridge::capi

using namespace ridge;
using namespace ridge::capi;

ridge_status ridge_model_load(const char* path, const ridge_model_options* options, ridge_model** model) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(path, "path"));
    RIDGE_TRY(needed(model, "model"));
    ridge_model_options o = RIDGE_MODEL_OPTIONS_INIT;
    if (options != nullptr) RIDGE_TRY(read_struct(options, "options", &o));
    RIDGE_ASSIGN(const SessionOptions session, session_options(o));
    auto loaded = std::make_unique<ridge_model>();
    RIDGE_ASSIGN(loaded->session, Session::open(path, session));
    loaded->info = info_of(*loaded->session);
    *model = loaded.release();
    return {};
  });
}

void ridge_model_destroy(ridge_model* model) {
  delete model;
}

ridge_status ridge_model_get_info(const ridge_model* model, ridge_model_info* info) {
  return guarded([&]() -> Outcome {
    RIDGE_TRY(needed(model, "model"));
    RIDGE_TRY(check_output(info, "info"));
    write_struct(model->info, info);
    return {};
  });
}
