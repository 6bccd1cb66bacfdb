// ridge run: answers a prompt, streamed; or a chat, line by line.

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "account/recorder.h"
#include "base/shortest.h"
#include "base/visible.h"
#include "engine/memory_report.h"
#include "lab/provenance_json.h"
#include "lab/workload_json.h"
#include "refusals.h"
#include "run_compare.h"
#include "verbs.h"

namespace ridge::app {

namespace {

struct RunOptions {
  CommonOptions common;
  std::optional<std::string> prompt;  // none: a chat
  std::string system;
  bool raw = false, memory = false;
  std::vector<std::string> compare;  // two configurations, as "isa=scalar activations=f32"
  std::optional<double> bound;
  int64_t max_new_tokens = 256;
  SamplingParams sampling;
};

struct Answer {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  Finish finish = Finish::kNone;
  int64_t prompt_tokens = 0, begin_ns = 0, first_ns = 0, end_ns = 0;
};

const char* finish_name(Finish f) {
  return f == Finish::kEnd ? "end" : f == Finish::kLength ? "length" : "error";
}

/// By the options' names, and as they were written.
Status check_sampling(const SamplingParams& s) {
  const auto refuse = [](const char* option, float v, const char* wanted) {
    return invalid_argument(option, " is ", std::isfinite(v) ? shortest(v) : v, ": use ", wanted);
  };
  if (!(s.temperature >= 0) || std::isinf(s.temperature))
    return refuse("--temperature", s.temperature, "0 or more");
  if (!(s.top_p > 0 && s.top_p <= 1)) return refuse("--top-p", s.top_p, "above 0 to 1");
  if (!(s.min_p >= 0 && s.min_p <= 1)) return refuse("--min-p", s.min_p, "0 to 1");
  if (!(s.repetition_penalty > 0) || std::isinf(s.repetition_penalty))
    return refuse("--repetition-penalty", s.repetition_penalty, "above 0");
  return {};
}

/// What the engine would refuse too, with a remedy that is none where --context is all of the model's
/// already.
Status check_prompt(const Session& session, size_t tokens) {
  const int64_t most = session.model().config().context;
  if (static_cast<int64_t>(tokens) < most) return {};
  return invalid_argument("the prompt has ", tokens, " tokens, this model was made for ", most,
                          " with at least one for the answer: shorten it");
}

Result<Answer> generate(Session& session, std::vector<int32_t> prompt, const RunOptions& o, bool stream) {
  Answer answer;
  answer.begin_ns = now_ns();
  answer.prompt_tokens = static_cast<int64_t>(prompt.size());
  RIDGE_TRY(check_prompt(session, prompt.size()));
  Request request;
  request.prompt = std::move(prompt);
  request.max_new_tokens = o.max_new_tokens;
  request.sampling = o.sampling;
  request.end_ids = session.end_ids();
  RIDGE_ASSIGN(const int64_t id, session.engine().submit(std::move(request)));
  TokenDecoder decoder(session.tokenizer());
  // What cannot be written is not worth the rest of the answer.
  const auto emit = [&](const std::string& piece) -> Status {
    answer.text += piece;
    if (!stream) return {};
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    const Status written = check_output();
    if (!written.ok() && answer.finish == Finish::kNone) session.engine().cancel(id);
    return written;
  };
  while (answer.finish == Finish::kNone) {
    if (interrupted()) {
      session.engine().cancel(id);
      return interruption();
    }
    RIDGE_ASSIGN(const auto events, session.engine().step());
    for (const TokenEvent& e : events) {
      if (e.finish == Finish::kError) return e.error;
      answer.end_ns = now_ns();
      if (answer.first_ns == 0) answer.first_ns = answer.end_ns;
      answer.ids.push_back(e.token), answer.logprobs.push_back(e.logprob);
      answer.finish = e.finish;
      if (e.finish != Finish::kEnd) RIDGE_TRY(emit(decoder.push(e.token)));
    }
  }
  RIDGE_TRY(emit(decoder.finish()));
  return answer;
}

using Json = nlohmann::ordered_json;

void print_line(const Json& j) {
  std::printf("%s\n", j.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

void print_json(Session& session, const Answer& a, const RunOptions& o) {
  Json j;
  j["text"] = a.text;
  j["prompt_tokens"] = a.prompt_tokens;
  j["ids"] = a.ids;
  j["logprobs"] = a.logprobs;
  j["finish"] = finish_name(a.finish);
  j["ttft_us"] = double(a.first_ns - a.begin_ns) / 1e3;
  if (a.ids.size() > 1) j["tpot_us"] = double(a.end_ns - a.first_ns) / 1e3 / double(a.ids.size() - 1);
  Workload w = workload_of(session, session.engine().options(), session.device().describe());
  w.prompt_tokens = a.prompt_tokens, w.output_tokens = static_cast<int64_t>(a.ids.size()), w.batch = 1;
  w.sampling = sampling_text(o.sampling);
  j["workload"] = workload_json(w);
  j["provenance"] = provenance_json(command_line(), 1);
  print_line(j);
}

/// What ended it: the token by which the model said so, or the limit that it met.
std::string ending(const Session& session, const Answer& a) {
  if (a.finish == Finish::kEnd && !a.ids.empty())
    return text("the end token ", visible(session.tokenizer().piece(a.ids.back())));
  return finish_name(a.finish);
}

void print_summary(const Session& session, const Answer& a) {
  const auto plural = [](size_t n) { return n == 1 ? "" : "s"; };
  std::fprintf(stderr, "\n[%lld prompt token%s, TTFT %.1f ms; %zu token%s",
               static_cast<long long>(a.prompt_tokens), plural(static_cast<size_t>(a.prompt_tokens)),
               double(a.first_ns - a.begin_ns) / 1e6, a.ids.size(), plural(a.ids.size()));
  if (a.ids.size() > 1) {
    const double tpot = double(a.end_ns - a.first_ns) / 1e6 / double(a.ids.size() - 1);
    std::fprintf(stderr, ", TPOT %.2f ms, %.1f tokens/s", tpot, 1e3 / tpot);
  }
  std::fprintf(stderr, "; ended by %s]\n", ending(session, a).c_str());
}

/// The prompt as the model is asked: through the file's chat template, or plain.
Result<std::vector<int32_t>> encode(const Session& session, const std::string& prompt, const RunOptions& o) {
  const bool plain = o.raw || !session.has_template();
  if (plain && !o.system.empty())
    return invalid_argument("--system goes through a chat template: ", o.raw ? "leave out --raw"
                                                                       : o.common.synthetic
                                                                           ? "a synthetic model has none"
                                                                           : "this file has none");
  if (plain && !o.raw)
    say(text(o.common.synthetic ? "a synthetic model" : "this file",
             " has no chat template: the prompt is taken as plain text, to be continued; --raw says so"));
  if (plain) return session.encode_text(prompt);
  std::vector<ChatMessage> messages;
  if (!o.system.empty()) messages.push_back({"system", o.system});
  messages.push_back({"user", prompt});
  return session.encode_chat(messages);
}

Result<Answer> answer(Session& session, const std::vector<ChatMessage>& messages, const RunOptions& o) {
  auto ids = session.encode_chat(messages);
  // Of a text, a limit is the text's: no state of the chat has changed.
  if (ids.status().code() == Code::kResourceExhausted) return invalid_argument(ids.status().message());
  RIDGE_TRY(ids.status());
  return generate(session, ids.take(), o, !o.common.json);
}

constexpr const char* kReset = "/reset";

/// A line that cannot be answered is named and left out; the chat goes on without it, or anew with /reset.
Status chat(Session& session, const RunOptions& o) {
  std::vector<ChatMessage> begun, messages;
  if (!o.system.empty()) begun.push_back({"system", o.system});
  messages = begun;
  int64_t lines = 0, refused = 0;
  std::string line;
  int why = 0;  // no line could be read
  while (!interrupted()) {
    if (stdout_is_terminal() && !o.common.json) std::printf("> "), std::fflush(stdout);
    errno = 0;
    if (!std::getline(std::cin, line)) {
      why = errno;
      break;
    }
    if (line.empty()) continue;
    if (line == kReset) {
      messages = begun;
      continue;
    }
    ++lines;
    messages.push_back({"user", line});
    const Result<Answer> a = answer(session, messages, o);
    if (!a.ok() && a.status().code() != Code::kInvalidArgument) return a.status();
    if (!a.ok()) {
      ++refused, messages.pop_back();
      // What was said before may be why, and then every line will be refused.
      say(text("line ", lines, ": ", a.status().message(),
               messages.size() > begun.size() ? text("; ", kReset, " begins the chat anew") : ""));
      continue;
    }
    if (o.common.json)
      print_json(session, *a, o);
    else
      std::printf("\n");
    RIDGE_TRY(check_output());
    messages.push_back({"assistant", a->text});
  }
  if (interrupted()) return interruption();
  if (std::cin.bad() || std::ferror(stdin) != 0)
    return io_error("stdin: cannot read the prompts: ",
                    why != 0 ? std::strerror(why) : "the system gives no reason");
  if (refused > 0) return invalid_argument(refused, " of ", lines, " lines were not answered");
  return {};
}

Status run_verb(const RunOptions& o) {
  if (!o.compare.empty()) {
    if (!o.prompt) return invalid_argument("--compare needs a prompt: give --prompt");
    return compare_runs(o.common, o.compare, o.bound,
                        [&](const Session& session) { return encode(session, *o.prompt, o); });
  }
  RIDGE_ASSIGN(SessionOptions options, o.common.session());
  RIDGE_TRY(check_sampling(o.sampling));
  options.needs_template = !o.prompt;
  if (!o.prompt && o.common.synthetic)
    return invalid_argument("a synthetic model has no chat template: give --prompt");
  if (!o.prompt && o.raw) return invalid_argument("--raw is for one prompt: give --prompt");
  RIDGE_ASSIGN(const auto session, Session::open(o.common.model, options));
  if (!o.prompt) return chat(*session, o);
  RIDGE_ASSIGN(std::vector<int32_t> ids, encode(*session, *o.prompt, o));
  RIDGE_ASSIGN(const Answer a, generate(*session, std::move(ids), o, !o.common.json));
  if (o.common.json)
    print_json(*session, a, o);
  else
    print_summary(*session, a);
  if (o.memory) {
    RIDGE_ASSIGN(const MemoryReport report, memory_report(*session));
    std::fputs(memory_text(report).c_str(), stderr);
  }
  return {};
}

}  // namespace

Command add_run(CLI::App& cli) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* sub = cli.add_subcommand("run", "Answer a prompt, or chat when none is given");
  o->common.add_to(*sub);
  sub->add_option("-p,--prompt", o->prompt,
                  "The prompt; without it, a chat reads lines from stdin: /reset begins it anew");
  sub->add_option("-s,--system", o->system, "System message of the chat template");
  sub->add_flag(
      "--raw", o->raw,
      "The prompt is plain text: no chat template. So it is, with a warning, where the file has none");
  sub->add_flag("--memory", o->memory, "After the answer: memory planned and held, item by item");
  sub->add_option("-n,--max-new-tokens", o->max_new_tokens, "Tokens of the answer at most")
      ->capture_default_str();
  sub->add_option("--temperature", o->sampling.temperature, "0: the most likely token")
      ->capture_default_str();
  sub->add_option("--top-k", o->sampling.top_k, "Keep the k most likely tokens; 0: off")
      ->capture_default_str();
  sub->add_option("--top-p", o->sampling.top_p, "Keep the most likely tokens with this much probability")
      ->capture_default_str();
  sub->add_option("--min-p", o->sampling.min_p, "Drop tokens below this share of the best one's probability")
      ->capture_default_str();
  sub->add_option("--repetition-penalty", o->sampling.repetition_penalty, "Divides the logits of tokens seen")
      ->capture_default_str();
  sub->add_option("--presence-penalty", o->sampling.presence_penalty, "Subtracted from logits of tokens seen")
      ->capture_default_str();
  sub->add_option("--frequency-penalty", o->sampling.frequency_penalty, "Subtracted for each time seen")
      ->capture_default_str();
  sub->add_option("--seed", o->sampling.seed, "Same seed, same draws")->capture_default_str();
  sub->add_option("--compare", o->compare,
                  "Two configurations; holds each call to its operator's reference and bound, and names the "
                  "first layer and operator beyond it")
      ->expected(2);
  sub->add_option("--bound", o->bound,
                  "Of --compare: also refuse outputs of the two that differ by more, norm over norm");
  sub->footer(
      "--compare computes each call again in double precision, some seconds for 10^9 weights times tokens; "
      "it "
      "ends with\n1 when one is beyond its bound, or a difference beyond --bound.\nExamples:\n  ridge run "
      "model.gguf -p 'Why "
      "is the sky blue?'\n  ridge run model.gguf -p 'Once upon' "
      "--raw -n 64 --temperature 0.7 --seed 1\n  ridge run model.gguf < questions.txt\n  ridge run "
      "model.gguf -p 'Once upon' --activations f32 --compare isa=scalar isa=avx512");
  return {
      sub, [o, sub]() -> Status {
        if (o->compare.empty())
          RIDGE_TRY(refuse_given(*sub, {"--bound"}, "for --compare"));
        else
          RIDGE_TRY(refuse_given(*sub,
                                 {"--memory", "--max-new-tokens", "--temperature", "--top-k", "--top-p",
                                  "--min-p", "--repetition-penalty", "--presence-penalty",
                                  "--frequency-penalty", "--seed", "--no-look-ahead"},
                                 "for an answer, which --compare does not give"));
        if (!o->prompt)
          RIDGE_TRY(refuse_given(*sub, {"--memory"}, "for one prompt, and without --prompt this is a chat"));
        return run_verb(*o);
      }};
}

}  // namespace ridge::app
