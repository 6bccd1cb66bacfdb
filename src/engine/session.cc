#include "engine/session.h"

#include <algorithm>

#include "base/log.h"
#include "engine/memory_plan.h"
#include "formats/tokenizer_gguf.h"

namespace ridge {

namespace {

// Private-use characters that stand for control tokens written by a user while the template runs.
constexpr std::string_view kOpen = "\xEE\x80\x80", kClose = "\xEE\x80\x81";  // U+E000, U+E001

/// "<|im_end|>" in a user's text becomes OPEN 17 CLOSE with the token's id, so that what the template does to
/// the text cannot make it look like the template's own. Linear in the text.
std::string defuse(const std::string& content, const tokenizer::AddedTokens& controls) {
  std::vector<tokenizer::AddedTokens::Place> places;
  controls.find(content, places);
  std::string out;
  size_t done = 0;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (place->at < done) continue;  // inside the one before
    out.append(content, done, place->at - done);
    controls.each(*place, false, [&](int32_t id, size_t bytes) {  // the longest
      out += text(kOpen, id, kClose), done = place->at + bytes;
      return true;
    });
  }
  return out.append(content, done);
}

/// The way back; the ranges where a user wrote a control token.
std::string restore(const std::string& rendered, const Tokenizer& tokenizer,
                    std::vector<std::pair<size_t, size_t>>* untrusted) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t open = rendered.find(kOpen, at), close = rendered.find(kClose, open);
    out.append(rendered, at, (close == std::string::npos ? rendered.size() : open) - at);
    if (close == std::string::npos) return out;
    const int64_t id = std::atoll(rendered.c_str() + open + kOpen.size());
    const std::string_view control =
        tokenizer.piece(static_cast<int32_t>(std::clamp<int64_t>(id, 0, tokenizer.vocab() - 1)));
    untrusted->emplace_back(out.size(), out.size() + control.size());
    out += control;
    at = close + kClose.size();
  }
}

/// The file's control tokens, to be found in what users write.
Result<tokenizer::AddedTokens> controls_of(const Tokenizer& t) {
  tokenizer::AddedTokens controls;
  for (int32_t id = 0; id < t.vocab(); ++id)
    if (t.type(id) == TokenType::kControl && !t.piece(id).empty()) controls.add(t.piece(id), id, true);
  RIDGE_TRY(controls.finish());
  return controls;
}

}  // namespace

const std::vector<Session::Step>& Session::steps() {
  static const std::vector<Step> steps = {
      &Session::read_tokenizer, &Session::read_template,    &Session::make_device, &Session::check_room,
      &Session::read_model,     &Session::check_vocabulary, &Session::make_engine};
  return steps;
}

Status Session::read_tokenizer(const SessionOptions& options, Values) {
  RIDGE_ASSIGN(Tokenizer tokenizer, load_tokenizer(*file_, {options.assume_pre}));
  RIDGE_ASSIGN(controls_, controls_of(tokenizer));
  tokenizer_ = std::move(tokenizer);
  return {};
}

Status Session::read_template(const SessionOptions&, Values) {
  RIDGE_ASSIGN(const auto source, file_->find_string("tokenizer.chat_template"));
  if (!source) return {};
  auto parsed = ChatTemplate::parse(std::string(*source));
  if (!parsed.ok()) return parsed.status().within(text(file_->path(), ": tokenizer.chat_template"));
  template_ = parsed.take();
  return {};
}

Status Session::make_device(const SessionOptions& options, Values) {
  RIDGE_ASSIGN(device_, create_device(options.device));
  return {};
}

/// Refuses a file whose weights and cache are more than the device may give, before any of it is read. A
/// file without a sound configuration is the loader's to refuse.
Status Session::check_room(const SessionOptions& options, Values) {
  if (device_ == nullptr) return {};
  const auto config = read_decoder_config(*file_);
  const auto room = device_->room();
  if (!config.ok() || !room.ok()) return {};
  RIDGE_ASSIGN(MemoryPlan plan, plan_memory(*file_, *config, options.engine));
  plan.needed = options.needed_tokens;
  return check_memory_plan(plan, *room).within(file_->path());
}

Status Session::read_model(const SessionOptions&, Values values) {
  if (device_ == nullptr) return {};
  RIDGE_ASSIGN(model_, load_model(*device_, *file_, values));
  return {};
}

Status Session::check_vocabulary(const SessionOptions&, Values) {
  if (model_ == nullptr || !tokenizer_ || tokenizer_->vocab() == model_->config().vocab) return {};
  return corrupt(file_->path(), ": the tokenizer has ", tokenizer_->vocab(), " tokens, the model ",
                 model_->config().vocab);
}

Status Session::make_engine(const SessionOptions& options, Values values) {
  if (model_ == nullptr) return {};
  if (values == Values::kNone) {
    RIDGE_ASSIGN(const EngineOptions checked, InferenceEngine::checked(model_->config(), options.engine));
    return KvPool::check(checked.kv);
  }
  RIDGE_ASSIGN(engine_, InferenceEngine::create(*device_, *model_, options.engine));
  return {};
}

Result<std::unique_ptr<Session>> Session::open(const std::string& path, const SessionOptions& options) {
  auto s = std::make_unique<Session>();
  if (options.synthetic) {
    RIDGE_ASSIGN(s->synthetic_, SyntheticFile::create(path));
    s->file_ = &s->synthetic_->file();
  } else {
    RIDGE_ASSIGN(GgufFile file, GgufFile::open(path));
    s->opened_ = std::make_unique<GgufFile>(std::move(file));
    s->file_ = s->opened_.get();
    if (options.needs_template && !s->file_->has("tokenizer.chat_template"))
      return declined(path,
                      " has no chat template, which a chat goes through: give one prompt, as plain text");
  }
  for (const Step step : steps())
    RIDGE_TRY((s.get()->*step)(options, options.synthetic ? Values::kRandom : Values::kFile));
  return s;
}

std::vector<Status> Session::refusals(const GgufFile& file, const SessionOptions& options) {
  Session s;
  s.file_ = &file;
  std::vector<Status> reasons;
  for (const Step step : steps())
    if (Status status = (s.*step)(options, Values::kNone); !status.ok()) {
      // An option may be two steps' business.
      bool told = false;
      for (const Status& reason : reasons) told |= reason.message() == status.message();
      if (!told) reasons.push_back(std::move(status));
    }
  return reasons;
}

std::vector<std::string> prompt_warnings(const Tokenizer& tokenizer, std::string_view prompt, bool add_bos) {
  std::vector<std::string> out;
  if (tokenizer.starts_with_bos(prompt))
    out.push_back(
        text("the prompt begins with ", printable(tokenizer.piece(tokenizer.bos())),
             " written out, which stays text",
             add_bos ? ": BOS is put before it, leave it out" : "; no BOS is added to this model's prompts"));
  if (const int64_t lost = tokenizer.unencodable(prompt); lost > 0)
    out.push_back(text(lost, lost == 1 ? " byte" : " bytes", " of the prompt's ", prompt.size(),
                       " have no token in this vocabulary and are left out"));
  return out;
}

Result<std::vector<int32_t>> Session::encode_text(std::string_view prompt) const {
  EncodeOptions o;
  o.add_bos = tokenizer_->add_bos();
  RIDGE_ASSIGN(std::vector<int32_t> ids, tokenizer_->encode(prompt, o));
  if (ids.empty() && !prompt.empty())
    return invalid_argument("no byte of the prompt's ", prompt.size(),
                            " has a token in this vocabulary: use other text");
  for (const std::string& warning : prompt_warnings(*tokenizer_, prompt, o.add_bos))
    log(LogLevel::kWarning, warning);
  return ids;
}

Result<std::vector<int32_t>> Session::encode_chat(const std::vector<ChatMessage>& messages) const {
  if (!template_) return declined(file_->path(), " has no chat template: use a plain prompt");
  if (messages.empty()) return invalid_argument("a chat needs at least one message");
  std::vector<TemplateValue> list;
  for (const ChatMessage& m : messages) {
    for (const std::string* field : {&m.role, &m.content})
      if (field->find(kOpen) != std::string::npos || field->find(kClose) != std::string::npos)
        return invalid_argument("a message holds U+E000 or U+E001, which are reserved here");
    list.push_back(TemplateValue::dict({{"role", TemplateValue::string(defuse(m.role, controls_))},
                                        {"content", TemplateValue::string(defuse(m.content, controls_))}}));
  }
  ChatContext context;
  context.messages = TemplateValue::list(std::move(list));
  context.add_generation_prompt = true;
  if (tokenizer_->bos() >= 0) context.bos_token = tokenizer_->piece(tokenizer_->bos());
  if (tokenizer_->eos() >= 0) context.eos_token = tokenizer_->piece(tokenizer_->eos());
  RIDGE_ASSIGN(const std::string rendered, template_->render(context.value()));
  // Of what the template takes: what it refuses is told once.
  for (const ChatMessage& m : messages)
    if (const int64_t lost = tokenizer_->unencodable(m.content); lost > 0)
      log(LogLevel::kWarning, lost, lost == 1 ? " byte" : " bytes", " of a message's ", m.content.size(),
          " have no token in this vocabulary and are left out");
  EncodeOptions o;
  o.parse_special = true;
  const std::string prompt = controls_.empty() ? rendered : restore(rendered, *tokenizer_, &o.untrusted);
  o.add_bos = tokenizer_->add_bos();  // encode() leaves it out where the template wrote one
  return tokenizer_->encode(prompt, o);
}

std::vector<int32_t> Session::end_ids() const {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer_->vocab(); ++id)
    if (tokenizer_->is_end(id)) ids.push_back(id);
  return ids;
}

}  // namespace ridge
