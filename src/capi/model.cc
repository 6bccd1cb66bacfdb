#include "capi/model.h"

#include "engine/option_names.h"

namespace ridge::capi {

namespace {

std::vector<std::string> split_names(const char* names) {
  std::vector<std::string> list;
  std::string_view rest = names == nullptr ? "" : names;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    list.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return list;
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
  s.device.cpu.threads = o.threads;
  NamedOptions names;
  if (o.isa != nullptr) names.isa = o.isa;
  if (o.activations != nullptr) names.activations = o.activations;
  if (o.kv != nullptr) names.kv = o.kv;
  if (o.assume_pre != nullptr) names.assume_pre = o.assume_pre;
  names.without_fusions = split_names(o.without_fusions);
  RIDGE_TRY(apply_names(names, "options->", &s));
  EngineOptions& e = s.engine;
  e.kv.context = o.context;
  if (o.page_size > 0) e.kv.page_size = o.page_size;
  if (o.max_sequences > 0) e.max_sequences = o.max_sequences;
  if (o.prefill_tokens > 0) e.prefill_tokens = o.prefill_tokens;
  return s;
}

ridge_model_info info_of(Session& session) {
  ridge_model_info i = RIDGE_MODEL_INFO_INIT;
  const DecoderConfig& c = session.model().config();
  i.architecture = c.architecture.c_str();
  i.layers = c.layers, i.hidden = c.hidden, i.heads = c.heads, i.kv_heads = c.kv_heads, i.vocab = c.vocab;
  i.context = session.engine().options().kv.context;
  i.weight_bytes = session.model().weights().bytes(), i.kv_bytes = session.engine().kv().bytes();
  i.threads = session.device().host_threads();
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
