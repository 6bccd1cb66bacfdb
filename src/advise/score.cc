#include "advise/score.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "advise/goal.h"
#include "base/files.h"
#include "base/user_folder.h"
#include "lab/workload_json.h"

namespace ridge {

namespace {

using Json = nlohmann::ordered_json;

/// By block; null where the machine does not tell.
Json states_json(const std::vector<DeviceState>& states, std::optional<double> DeviceState::*reading) {
  Json list = Json::array();
  for (const DeviceState& s : states) list.push_back(s.*reading ? Json(*(s.*reading)) : Json(nullptr));
  return list;
}

Json interval_json(const Interval& i) {
  return {{"low", i.low}, {"value", i.value}, {"high", i.high}};
}

Json judgement_json(const LeverJudgement& j) {
  Json out = {{"lever", j.lever.name},
              {"from", j.lever.from},
              {"to", j.lever.to},
              {"declined", j.declined},
              {"reason", j.reason}};
  if (j.predicted) out["predicted_gain"] = interval_json(j.gain);
  return out;
}

void count_line(std::string_view line, Score* s) {
  try {
    const Json j = Json::parse(line);
    const std::string decision = j.at("decision");
    if (decision == decision_name(Decision::kHeld) || decision == decision_name(Decision::kRefuted)) {
      const Json& predicted = j.at("chosen").at("predicted_gain");
      const Interval gain{predicted.at("low"), predicted.at("value"), predicted.at("high")};
      const double measured = j.at("experiment").at("gain");
      ++(decision == decision_name(Decision::kHeld) ? s->held : s->refuted);
      const Json& found = j.at("experiment").at("measured_gain");
      if (predicts_sign(gain) && predicts_sign({found.at("low"), measured, found.at("high")}))
        s->sign_right += gain.value * measured > 0;
      else
        ++s->sign_open;
    } else {
      s->undecided += decision == decision_name(Decision::kNoDecision);
    }
  } catch (const nlohmann::json::exception&) {
    ++s->unreadable;
  }
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string advice_json(const AdviceRecord& r) {
  Json j;
  j["considered"] = Json::array();
  for (const LeverJudgement& l : r.considered) j["considered"].push_back(judgement_json(l));
  j["chosen"] = r.choice() != nullptr ? judgement_json(*r.choice()) : Json(nullptr);
  if (r.choice() != nullptr) j["purpose"] = purpose_name(purpose_of(*r.choice()));
  j["advice"] = advice_name(advice_of(r)), j["advice_sentence"] = advice_sentence(r);
  if (r.goal) {
    j["goal"] = {{"ttft_us", r.goal->goal_us},
                 {"now_us", r.goal->now_us},
                 {"queue_share", r.goal->queue_share},
                 {"verdict", goal_name(r.goal->verdict)},
                 {"nearest_us", r.goal->nearest_us}};
    if (!r.goal->lever.name.empty()) j["goal"]["lever"] = option_of(r.goal->lever);
  }
  j["decision"] = decision_name(r.decision), j["decision_reason"] = r.decision_reason;
  if (!r.block_gains.empty()) {
    Json& e = j["experiment"];
    e["order"] = "original changed changed original";
    e["blocks"] = r.block_gains.size(), e["block_gains"] = r.block_gains;
    e["original_us"] = r.original_us, e["changed_us"] = r.changed_us;
    e["first_original_us"] = r.first_original_us, e["first_changed_us"] = r.first_changed_us;
    if (r.pressure >= 0) e["pressure"] = r.pressure;
    e["block_clock_mhz"] = states_json(r.block_states, &DeviceState::clock_mhz);
    e["block_power_w"] = states_json(r.block_states, &DeviceState::power_w);
    e["gain"] = r.measured.value, e["levers_tried"] = r.levers_tried;
    if (r.interval_known) e["measured_gain"] = interval_json(r.measured), e["confidence"] = r.confidence;
  }
  if (r.quality.measured)
    j["quality"] = {{"tokens", r.quality.tokens},
                    {"kl_mean_nats", r.quality.kl_mean},
                    {"kl_max_nats", r.quality.kl_max},
                    {"same_top_token", r.quality.same_top}};
  j["workload"] = workload_json(r.workload);
  j["machine"] = {{"cpu", r.cpu}, {"isa", r.isa}, {"threads", r.threads}, {"measured", r.machine_date}};
  if (!r.machine_disturbed.empty()) j["machine"]["disturbed"] = r.machine_disturbed;
  j["provenance"] = {{"date", r.date},         {"commit", r.commit},   {"build", r.build},
                     {"compiler", r.compiler}, {"command", r.command}, {"runs", 4 * r.block_gains.size()}};
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

Status make_place(const std::string& path) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return io_error(path, ": cannot make its folder: ", error.message());
  // A file that is there is appended to, and need not be replaceable.
  if (access(path.c_str(), F_OK) != 0) return check_writable(path);
  if (!std::filesystem::is_regular_file(path, error))
    return invalid_argument(path, " is not a file: name one that keeps the score");
  if (access(path.c_str(), R_OK | W_OK) != 0) return io_error(path, ": cannot open: ", std::strerror(errno));
  return {};
}

/// All of `bytes`, or the system's error; `written` says how many.
int append(int fd, std::string_view bytes, size_t* written) {
  while (*written < bytes.size()) {
    const ssize_t put = write(fd, bytes.data() + *written, bytes.size() - *written);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    *written += static_cast<size_t>(put);
  }
  return 0;
}

}  // namespace

Status prepare_score(const std::string& path) {
  RIDGE_TRY(make_place(path));
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const auto not_ours = [&] {
    return invalid_argument(path, " keeps no score: it holds no line of advice; name a new file");
  };
  const Result<Score> s = read_score(path);
  if (s.status().code() == Code::kResourceExhausted) return not_ours();  // larger than any score
  RIDGE_TRY(s.status());
  // One line of several may be torn.
  return s->unreadable > 0 && s->held + s->refuted + s->undecided == 0 ? not_ours() : Status();
}

Status append_score(const std::string& path, const AdviceRecord& record) {
  RIDGE_TRY(make_place(path));
  const bool made = access(path.c_str(), F_OK) != 0;
  const Descriptor file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  const auto failed = [&](const char* what) {
    return io_error(path, ": cannot ", what, ": ", std::strerror(errno));
  };
  if (file.get() < 0) return failed("open");
  if (flock(file.get(), LOCK_EX) != 0) return failed("lock");
  const off_t end = lseek(file.get(), 0, SEEK_END);
  if (end < 0) return failed("seek");
  char last = '\n';
  if (end > 0 && pread(file.get(), &last, 1, end - 1) != 1) return failed("read");
  // A line that a crash tore must not swallow this one.
  const std::string line = (last == '\n' ? "" : "\n") + advice_json(record) + "\n";
  size_t written = 0;
  const int error = append(file.get(), line, &written);
  if (error == 0) return {};
  if (ftruncate(file.get(), end) != 0) return failed("take back a part of a line");
  // Made here, and nobody else has written to it: the lock is held.
  if (made && end == 0) unlink(path.c_str());
  return io_error(path, ": cannot append ", line.size(), " bytes at byte ", end, " (", written,
                  " bytes were written and taken back): ", std::strerror(error),
                  error == ENOSPC || error == EDQUOT ? ": free some space or write elsewhere" : "");
}

Result<Score> read_score(const std::string& path) {
  Score s;
  if (!std::filesystem::exists(path)) return s;
  RIDGE_ASSIGN(const std::string content, read_file(path, 256 << 20));
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    if (end > at) count_line(std::string_view(content).substr(at, end - at), &s);
    at = end + 1;
  }
  return s;
}

std::string score_text(const Score& s) {
  return text("score: ", s.held, " held, ", s.refuted, " refuted, ", s.undecided,
              " without decision; sign right in ", s.sign_right, " of ", s.held + s.refuted - s.sign_open,
              " decided that were predicted with one",
              s.unreadable > 0 ? text("; ", s.unreadable, " lines unreadable") : "");
}

std::string default_score_path() {
  if (const char* path = std::getenv("RIDGE_ADVICE")) return path;
  const std::string folder = user_folder();
  return folder.empty() ? "" : folder + "/advice.jsonl";
}

}  // namespace ridge
