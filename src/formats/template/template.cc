#include "formats/template/template.h"

#include <new>

#include "base/limits.h"
#include "base/utf8.h"
#include "formats/template/parser.h"
#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge {

struct ChatTemplate::Parsed {
  jinja::Program program;
};

namespace {

using jinja::Kind;

// The interpreter relies on it: texts are UTF-8, nothing is nested too deep, only data.
Status check_context(const jinja::Value& v) {
  if (v.depth() > limits::kTemplateValueDepth)
    return resource_exhausted("the template's context is nested ", v.depth(), " deep, the limit is ",
                              limits::kTemplateValueDepth);
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return {};
    case Kind::kString:
      if (!is_utf8(v.text()))
        return invalid_argument("the template's context holds a text that is not UTF-8: ",
                                printable(v.text()));
      return {};
    case Kind::kList:
      for (const jinja::Value& item : v.items()) RIDGE_TRY(check_context(item));
      return {};
    case Kind::kDict:
      for (const auto& [key, value] : v.dict().items) {
        RIDGE_TRY(check_context(key));
        RIDGE_TRY(check_context(value));
      }
      return {};
    default:
      return invalid_argument("the template's context holds a value that is no data: ", jinja::type_name(v));
  }
}

}  // namespace

TemplateValue ChatContext::value() const {
  std::vector<std::pair<std::string, TemplateValue>> pairs = {
      {"messages", messages},
      {"add_generation_prompt", TemplateValue::boolean(add_generation_prompt)},
      {"bos_token", TemplateValue::string(bos_token)},
      {"eos_token", TemplateValue::string(eos_token)},
      {"tools", tools},
      {"documents", documents}};
  pairs.insert(pairs.end(), more.begin(), more.end());
  return TemplateValue::dict(std::move(pairs));
}

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  if (static_cast<int64_t>(source.size()) > limits::kTemplateBytes)
    return resource_exhausted("the chat template has ", source.size(), " bytes, the limit is ",
                              limits::kTemplateBytes);
  if (!is_utf8(source)) return corrupt("the chat template is not UTF-8");
  try {
    auto parsed = std::make_shared<Parsed>();
    jinja::Parser(jinja::tokenize(source), &parsed->program).run();
    ChatTemplate out;
    out.source_ = std::make_shared<const std::string>(std::move(source));
    out.parsed_ = std::move(parsed);
    return out;
  } catch (const jinja::Failure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to parse the chat template");
  }
}

Result<std::string> ChatTemplate::render(const TemplateValue& context, int64_t now_unix) const {
  if (!context.is(Kind::kDict))
    return invalid_argument("the template's context is no dict but ", jinja::type_name(context));
  RIDGE_TRY(check_context(context));
  try {
    return jinja::Renderer(parsed_->program, context, now_unix).run();
  } catch (const jinja::Failure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory to render the chat template");
  }
}

}  // namespace ridge
