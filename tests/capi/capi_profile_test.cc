// The account through the C API, against a machine file made here: measuring one takes longer than a test
// may.

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "capi/small_model.h"
#include "machine/machine.h"
#include "runtime/device.h"

namespace ridge {
namespace {

/// A machine of round numbers that passes for this one.
class MachineFile {
 public:
  explicit MachineFile(const std::string& cpu = "", double pressure = 0)
      : path_(text(testing::TempDir(), "ridge_capi_machine_", getpid(), ".json")) {
    const std::string isa = isa_name(native_isa());
    const MachineIdentity here = this_machine(isa);
    Machine m;
    m.cpu = cpu.empty() ? here.cpu : cpu, m.isa = here.isa, m.build = here.build;
    m.compiler = "none", m.commit = "0123456", m.date = "2026-01-01T00:00:00Z", m.governor = "none",
    m.cores = 1, m.pressure = pressure;
    ThreadCeilings c;
    c.threads = 1;
    c.curve = {{32 << 10, 100, 50, 40}, {512 << 20, 10, 5, 4}};
    c.pieces = {{16 << 10, 5}, {16 << 20, 10}};
    c.flops.fill(1e11);
    m.by_threads = {c};
    const Status saved = save_machine(path_, m);
    EXPECT_TRUE(saved.ok()) << saved.message();
  }
  ~MachineFile() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

TEST(CApiProfile, the_account_of_a_workload_is_one_json_object_with_its_phases) {
  const LoadedModel model(2);
  const MachineFile machine;
  ridge_workload w = RIDGE_WORKLOAD_INIT;
  w.prompt_tokens = 20, w.output_tokens = 5, w.batch = 2, w.machine_file = machine.path();
  char* json = nullptr;
  ASSERT_EQ(ridge_profile(model, &w, &json), RIDGE_OK) << ridge_error_message();
  const auto j = nlohmann::json::parse(json);
  ridge_string_destroy(json);
  EXPECT_EQ(j["workload"]["prompt_tokens"], 20);
  EXPECT_EQ(j["workload"]["output_tokens"], 5);
  EXPECT_EQ(j["workload"]["batch"], 2);
  ASSERT_EQ(j["phases"].size(), 2u);
  EXPECT_EQ(j["phases"][0]["name"], "prefill");
  EXPECT_EQ(j["phases"][1]["name"], "decode");
  // Four linears of a layer and one head, twice gate and up, of one prefill step and of four decode steps.
  for (const auto& phase : j["phases"]) {
    int64_t calls = 0;
    for (const auto& row : phase["operators"])
      if (row["name"] == "linear") calls += row["calls"].get<int64_t>();
    EXPECT_EQ(calls, phase["name"] == "prefill" ? 8 : 4 * 8);
  }
  // The model is free again.
  const std::vector<int32_t> prompt = {1};
  ridge_request r = RIDGE_REQUEST_INIT;
  r.prompt = prompt.data(), r.prompt_count = 1, r.max_new_tokens = 1;
  EXPECT_EQ(ridge_generate(model, &r, nullptr, nullptr, nullptr), RIDGE_OK);
}

/// Where log lines go while it lives.
class LogLines {
 public:
  LogLines() { ridge_set_log(keep, &lines, RIDGE_LOG_WARNING); }
  ~LogLines() { ridge_set_log(nullptr, nullptr, RIDGE_LOG_WARNING); }
  std::string lines;

 private:
  static void keep(void* user, ridge_log_level, const char* line, size_t bytes) {
    static_cast<std::string*>(user)->append(line, bytes);
  }
};

TEST(CApiProfile, ceilings_that_other_work_disturbed_are_said_to_be) {
  const LoadedModel model;
  ridge_workload w = RIDGE_WORKLOAD_INIT;
  w.prompt_tokens = 8, w.output_tokens = 2;
  for (const double pressure : {0.0, 0.5}) {
    const MachineFile machine("", pressure);
    w.machine_file = machine.path();
    LogLines log;
    char* json = nullptr;
    ASSERT_EQ(ridge_profile(model, &w, &json), RIDGE_OK) << ridge_error_message();
    const auto j = nlohmann::json::parse(json);
    ridge_string_destroy(json);
    EXPECT_EQ(j["machine"].contains("disturbed"), pressure > 0);
    EXPECT_EQ(log.lines.find("the machine was not idle") != std::string::npos, pressure > 0) << log.lines;
  }
}

TEST(CApiProfile, ceilings_of_fewer_threads_than_the_models_are_refused) {
  const SmallFile file;
  const MachineFile machine;
  ridge_model_options o = RIDGE_MODEL_OPTIONS_INIT;
  o.threads = 2;
  ridge_model* model = nullptr;
  ASSERT_EQ(ridge_model_load(file.path(), &o, &model), RIDGE_OK) << ridge_error_message();
  ridge_workload w = RIDGE_WORKLOAD_INIT;
  w.prompt_tokens = 8, w.output_tokens = 2, w.machine_file = machine.path();
  char* json = nullptr;
  EXPECT_EQ(ridge_profile(model, &w, &json), RIDGE_DECLINED);
  EXPECT_TRUE(says("ceilings of 1 thread, none of 2"));
  EXPECT_EQ(json, nullptr);
  ridge_model_destroy(model);
}

TEST(CApiProfile, what_cannot_be_profiled_is_refused) {
  const LoadedModel model(2);
  const MachineFile machine;
  char* json = nullptr;
  ridge_workload w = RIDGE_WORKLOAD_INIT;
  const auto refused = [&](ridge_status wanted, const char* part) {
    w.machine_file = machine.path();
    EXPECT_EQ(ridge_profile(model, &w, &json), wanted);
    EXPECT_EQ(json, nullptr);
    return says(part);
  };
  w.batch = 3;
  EXPECT_TRUE(refused(RIDGE_INVALID_ARGUMENT, "batch is 3, the model was loaded with max_sequences 2"));
  w.batch = 1, w.prompt_tokens = -1;
  EXPECT_TRUE(refused(RIDGE_INVALID_ARGUMENT, "prompt_tokens is -1"));
  w.prompt_tokens = 500;
  EXPECT_TRUE(refused(RIDGE_INVALID_ARGUMENT, "prompt_tokens is 500: use 1 to 127"));
  w.prompt_tokens = 16, w.output_tokens = 300;
  EXPECT_TRUE(refused(RIDGE_INVALID_ARGUMENT, "output_tokens is 300"));
  w.output_tokens = 113;
  EXPECT_TRUE(refused(RIDGE_INVALID_ARGUMENT, "the prompt has 16 tokens and the answer 113"));
  w.prompt_tokens = 5, w.output_tokens = 5;
  const MachineFile other("another processor");
  EXPECT_TRUE(refused(RIDGE_DECLINED, "another processor"));
  w.machine_file = "no/such/machine.json";
  EXPECT_EQ(ridge_profile(model, &w, &json), RIDGE_NOT_FOUND);
  const std::vector<int32_t> prompt = {1};
  ridge_request r = RIDGE_REQUEST_INIT;
  r.prompt = prompt.data(), r.prompt_count = 1, r.max_new_tokens = 9;
  int64_t id = 0;
  ASSERT_EQ(ridge_submit(model, &r, &id), RIDGE_OK);
  EXPECT_TRUE(refused(RIDGE_INVALID_ARGUMENT, "1 requests are running"));
}

}  // namespace
}  // namespace ridge
