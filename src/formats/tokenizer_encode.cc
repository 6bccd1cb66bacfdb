#include <algorithm>

#include "base/limits.h"
#include "formats/tokenizer_state.h"

namespace ridge {
namespace {

using tokenizer::AddedTokens;
using tokenizer::State;
using Spans = std::vector<std::pair<size_t, size_t>>;

Status check_spans(const Spans& spans, size_t size) {
  size_t last = 0;
  for (const auto& [begin, end] : spans) {
    if (begin < last || end < begin || end > size)
      return invalid_argument("untrusted span [", begin, ", ", end, ") of a text of ", size,
                              " bytes: spans are ascending, disjoint and inside the text");
    last = end;
  }
  return {};
}

// Writes U+2581 as a space, as the pieces are; moves the spans along.
std::string unescape_spaces(std::string_view text, Spans& spans) {
  constexpr std::string_view kEscaped = "\u2581";
  std::string out;
  out.reserve(text.size());
  std::vector<size_t*> borders;
  for (auto& [begin, end] : spans) borders.insert(borders.end(), {&begin, &end});
  size_t border = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(kEscaped, at), text.size());
    // A border inside an escaped space moves behind it.
    for (; border < borders.size() && *borders[border] <= next; ++border)
      *borders[border] = out.size() + *borders[border] - at;
    out.append(text, at, next - at);
    at = next;
    if (at == text.size()) break;
    out += ' ';
    at += kEscaped.size();
    for (; border < borders.size() && *borders[border] < at; ++border) *borders[border] = out.size();
  }
  for (; border < borders.size(); ++border) *borders[border] = out.size();
  return out;
}

// One text on its way to ids.
class Encoding {
 public:
  Encoding(const State& state, std::string_view text, const EncodeOptions& options, const Spans& untrusted)
      : state_(state), text_(text), parse_(options.parse_special), untrusted_(untrusted) {
    if (text.size() >= 1024) scratch_.cache.enable();
  }

  std::vector<int32_t> run() {
    const AddedTokens& added = parse_ ? state_.all : state_.user_defined;
    std::vector<AddedTokens::Place> places;
    added.find(text_, places);
    for (size_t i = places.size(); i-- > 0;) {
      if (places[i].at < std::max(done_, resume_)) continue;
      const bool untrusted = touches_untrusted(places[i].at, size_t{places[i].at} + 1);
      added.each(places[i], untrusted,
                 [&](int32_t id, size_t bytes) { return take(id, places[i].at, bytes); });
    }
    stretch(text_.size());
    return std::move(ids_);
  }

 private:
  // The token at [at, at + bytes), unless its rule or an untrusted span forbids it.
  bool take(int32_t id, size_t at, size_t bytes) {
    const size_t end = at + bytes;
    if (state_.vocabulary.types[id] == TokenType::kControl && touches_untrusted(at, end)) return false;
    const auto found = state_.rules.find(id);
    if (found == state_.rules.end()) return put(id, at, end);
    const AddedTokenRule& rule = found->second;
    if (rule.single_word && (word_before(at) || word_after(end))) {
      resume_ = end;  // as the reference library: the place is used up, though its text stays text
      return true;
    }
    return put(id, rule.lstrip ? spaces_before(at) : at, rule.rstrip ? spaces_after(end) : end);
  }
  bool put(int32_t id, size_t begin, size_t end) {
    stretch(begin);
    ids_.push_back(id);
    done_ = end;
    return true;
  }
  // What lies between the last token taken and `end`.
  void stretch(size_t end) {
    if (end <= done_) return;
    const std::string_view text = text_.substr(done_, end - done_);
    if (state_.space_prefix) {
      prefixed_.assign(1, ' ').append(text);
      state_.model->encode(prefixed_, scratch_, ids_);
    } else {
      state_.model->encode(text, scratch_, ids_);
    }
    done_ = end;
  }
  // Places ascend, so that the first span that could matter only moves forward.
  bool touches_untrusted(size_t begin, size_t end) {
    while (span_ < untrusted_.size() && untrusted_[span_].second <= begin) ++span_;
    return span_ < untrusted_.size() && untrusted_[span_].first < end;
  }

  CodePoint before(size_t at) const {
    size_t start = at - 1;
    while (start > 0 && at - start < 4 && (static_cast<uint8_t>(text_[start]) & 0xc0) == 0x80) --start;
    const CodePoint c = decode_utf8(text_, start);
    return c.valid && start + c.bytes == at ? c : CodePoint();
  }
  bool word_before(size_t at) const { return at > 0 && classes_.word(before(at).value); }
  bool word_after(size_t at) const {
    return at < text_.size() && classes_.word(decode_utf8(text_, at).value);
  }
  size_t spaces_before(size_t at) const {
    while (at > done_ && classes_.space(before(at).value)) at -= before(at).bytes;
    return at;
  }
  size_t spaces_after(size_t at) const {
    while (at < text_.size() && classes_.space(decode_utf8(text_, at).value))
      at += decode_utf8(text_, at).bytes;
    return at;
  }

  const State& state_;
  std::string_view text_;
  bool parse_;
  const Spans& untrusted_;
  const CharClasses& classes_ = CharClasses::get();
  size_t done_ = 0;    // everything before it has its ids
  size_t resume_ = 0;  // no token may begin before it
  size_t span_ = 0;
  std::vector<int32_t> ids_;
  std::string prefixed_;
  tokenizer::Model::Scratch scratch_;
};

}  // namespace

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (static_cast<int64_t>(text.size()) > limits::kTextBytes)
    return resource_exhausted("the text has ", text.size(), " bytes, the limit is ", limits::kTextBytes);
  RIDGE_TRY(check_spans(options.untrusted, text.size()));
  Spans untrusted = options.untrusted;
  std::erase_if(untrusted, [](const auto& span) { return span.first == span.second; });
  std::string unescaped;
  if (state_->spaces_written && text.find("\u2581") != text.npos) {
    unescaped = unescape_spaces(text, untrusted);
    text = unescaped;
  }
  std::vector<int32_t> ids = Encoding(*state_, text, options, untrusted).run();
  if (options.add_bos && state_->bos >= 0 && (ids.empty() || ids[0] != state_->bos))
    ids.insert(ids.begin(), state_->bos);
  if (options.add_eos && state_->eos >= 0) ids.push_back(state_->eos);
  return ids;
}

int64_t Tokenizer::unencodable(std::string_view text) const {
  return state_->model->unencodable(text);
}

}  // namespace ridge
