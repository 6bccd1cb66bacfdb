// See harness.h.

#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "device/convert.cuh"

namespace ridge::bench {

void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s, %s\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}
void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

DeviceBlock::DeviceBlock(int64_t size) : bytes(size) {
  must(cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(size, 16))), "cudaMalloc");
}
DeviceBlock::~DeviceBlock() {
  if (data) cudaFree(data);
}

template <class T>
__global__ void fill_field_kernel(T* data, int64_t count, uint64_t seed, float scale, uint64_t first) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x)
    data[i] = device::from_float<T>(scale * field(first + static_cast<uint64_t>(i), seed));
}
template <class T>
void fill_field(T* data, int64_t count, uint64_t seed, float scale, uint64_t first) {
  if (count > 0) fill_field_kernel<<<1056, 512>>>(data, count, seed, scale, first);
  must(cudaGetLastError(), "fill_field");
}
template void fill_field<float>(float*, int64_t, uint64_t, float, uint64_t);
template void fill_field<bf16>(bf16*, int64_t, uint64_t, float, uint64_t);
template void fill_field<f16>(f16*, int64_t, uint64_t, float, uint64_t);
void fill_bytes(void* data, int64_t bytes, int value) {
  must(cudaMemset(data, value, static_cast<size_t>(bytes)), "cudaMemset");
}

namespace {

std::string shell(const char* command) {
  std::string out;
  if (FILE* pipe = popen(command, "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, pipe)) out += line;
    pclose(pipe);
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}
std::string json_string(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}
std::string number(double v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", v);
  return std::isfinite(v) ? buffer : "null";
}

}  // namespace

struct Session::Graph {
  cudaGraphExec_t exec = nullptr;
  int calls = 0;
  std::vector<double> us;
  ~Graph() {
    if (exec) cudaGraphExecDestroy(exec);
  }
};

Session::Session(std::string out_folder, std::string commit, std::string command)
    : folder_(std::move(out_folder)), commit_(std::move(commit)), command_(std::move(command)) {
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  multiprocessors_ = properties.multiProcessorCount;
  must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime);
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", std::gmtime(&now));
  started_ = date;
  device_ = std::string("\"device\": ") + json_string(properties.name) + ", \"driver\": " +
            json_string(shell("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null")) +
            ", \"cuda\": " +
            json_string(std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10));
  std::printf("%s, %d multiprocessors, %s, commit %s, clocks %s\n", properties.name, multiprocessors_, date,
              commit_.c_str(), clocks().c_str());
}

std::string Session::clocks() const {
  return shell(
      "nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,noheader "
      "2>/dev/null");
}

double Session::glance(const Contender& contender, int sets) {
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "event"), must(cudaEventCreate(&end), "event");
  for (int i = 0; i < 2; ++i) contender.run(stream_, i % sets);
  double best = 1e30;
  for (int round = 0; round < 2; ++round) {
    const int calls = std::max(sets, 20);
    must(cudaEventRecord(begin, stream_), "record");
    for (int i = 0; i < calls; ++i) contender.run(stream_, i % sets);
    must(cudaEventRecord(end, stream_), "record");
    must(cudaEventSynchronize(end), "synchronize");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    best = std::min(best, ms * 1e3 / calls);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  return best;
}

std::vector<Timing> Session::measure(const Condition& condition, const std::vector<Contender>& contenders) {
  const std::string before = clocks();
  std::vector<Graph> graphs(contenders.size());
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "event"), must(cudaEventCreate(&end), "event");
  for (size_t c = 0; c < contenders.size(); ++c) {
    const double once = std::max(0.5, glance(contenders[c], condition.sets));
    const int sets = condition.sets, wanted = static_cast<int>(std::min(2000.0, graph_us / once));
    graphs[c].calls = std::max(sets, (wanted + sets - 1) / sets * sets);
    cudaGraph_t graph;
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
    for (int i = 0; i < graphs[c].calls; ++i) contenders[c].run(stream_, i % sets);
    must(cudaStreamEndCapture(stream_, &graph), "end capture");
    must(cudaGraphInstantiate(&graphs[c].exec, graph, 0), "instantiate");
    cudaGraphDestroy(graph);
    must(cudaGraphLaunch(graphs[c].exec, stream_), "launch");
  }
  must(cudaStreamSynchronize(stream_), "warm-up");
  for (int round = 0; round < rounds; ++round)
    for (Graph& graph : graphs) {
      must(cudaEventRecord(begin, stream_), "record");
      must(cudaGraphLaunch(graph.exec, stream_), "launch");
      must(cudaEventRecord(end, stream_), "record");
      must(cudaEventSynchronize(end), "synchronize");
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      graph.us.push_back(ms * 1e3 / graph.calls);
    }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  const std::string after = clocks();

  std::vector<Timing> timings;
  std::string list;
  for (size_t c = 0; c < contenders.size(); ++c) {
    auto& us = graphs[c].us;
    std::sort(us.begin(), us.end());
    Timing t{contenders[c].name, contenders[c].ours,    us[us.size() / 2],
             us[us.size() / 4],  us[us.size() * 3 / 4], rounds,
             graphs[c].calls};
    const double share = read_ceiling > 0 ? condition.bytes / t.us / read_ceiling : 0;
    std::printf("%-34s %-40s %9.2f us [%.2f %.2f] %6.0f GB/s %5.1f %% of R%s\n", condition.row.c_str(),
                t.name.c_str(), t.us, t.us_low, t.us_high, condition.bytes / t.us / 1e3, share * 100,
                t.ours && condition.target_us > 0 ? (t.us <= condition.target_us ? "  ok" : "  ABOVE") : "");
    list += (c ? ", " : "") + std::string("{\"name\": ") + json_string(t.name) +
            ", \"ours\": " + (t.ours ? "true" : "false") + ", \"us\": " + number(t.us) +
            ", \"us_quartiles\": [" + number(t.us_low) + ", " + number(t.us_high) +
            "], \"share_of_read_ceiling\": " + number(share) + ", \"replays\": " + std::to_string(t.replays) +
            ", \"calls_in_graph\": " + std::to_string(t.calls) + "}";
    timings.push_back(t);
  }
  std::fflush(stdout);
  rows_ += (rows_.empty() ? "" : ",\n") + std::string("  {\"row\": ") + json_string(condition.row) +
           ", \"condition\": " + json_string(condition.text) + ", \"bytes\": " + number(condition.bytes) +
           ", \"flops\": " + number(condition.flops) + ", \"input_sets\": " + std::to_string(condition.sets) +
           ", \"target\": " + json_string(condition.target) +
           ", \"read_ceiling_bytes_per_us\": " + number(read_ceiling) + ", " + device_ +
           ", \"clocks_before\": " + json_string(before) + ", \"clocks_after\": " + json_string(after) +
           ", \"commit\": " + json_string(commit_) + ", \"date\": " + json_string(started_) +
           ", \"command\": " + json_string(command_) + ",\n   \"contenders\": [" + list + "]}";
  return timings;
}

void Session::note(const std::string& line) {
  std::printf("%s\n", line.c_str()), std::fflush(stdout);
}

void Session::check(bool ok, const std::string& what, double worst, double bound) {
  ++checks_done_;
  if (!ok) ++failures_;
  if (!ok || std::getenv("RIDGE_BENCH_VERBOSE"))
    std::printf("%s %s: worst error %.3g, bound %.3g\n", ok ? "ok  " : "FAIL", what.c_str(), worst, bound);
  checks_ += (checks_.empty() ? "" : ",\n") + std::string("  {\"check\": ") + json_string(what) +
             ", \"ok\": " + (ok ? "true" : "false") + ", \"worst\": " + number(worst) +
             ", \"bound\": " + number(bound) + "}";
}

Session::~Session() {
  std::printf("%d checks, %d failed\n", checks_done_, failures_);
  if (!folder_.empty()) {
    const auto write = [&](const char* name, const std::string& content) {
      if (FILE* file = std::fopen((folder_ + "/" + name).c_str(), "w")) {
        std::fprintf(file, "[\n%s\n]\n", content.c_str());
        std::fclose(file);
      }
    };
    if (!rows_.empty()) write("rows.json", rows_);
    if (!checks_.empty()) write("checks.json", checks_);
  }
  cudaStreamDestroy(stream_);
}

}  // namespace ridge::bench
