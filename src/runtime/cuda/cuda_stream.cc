#include <nvtx3/nvToolsExt.h>

#include <algorithm>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/fault_text.h"
#include "runtime/cuda/stamps.h"

namespace ridge {

namespace {

class CudaEvent final : public Event {
 public:
  static Result<std::unique_ptr<Event>> create() {
    auto event = std::make_unique<CudaEvent>();
    RIDGE_TRY(
        cuda_status(cudaEventCreateWithFlags(&event->event_, cudaEventDisableTiming), "cudaEventCreate"));
    return std::unique_ptr<Event>(std::move(event));
  }
  ~CudaEvent() override {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }
  Status wait() override { return cuda_status(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  cudaEvent_t native() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

int64_t free_bytes() {
  size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<int64_t>(free) : 0;
}

class CudaGraph final : public Graph {
 public:
  CudaGraph(cudaGraphExec_t executable, int64_t bytes) : executable_(executable), bytes_(bytes) {}
  ~CudaGraph() override { (void)cudaGraphExecDestroy(executable_); }
  int64_t bytes() const override { return bytes_; }
  cudaGraphExec_t native() const { return executable_; }

 private:
  cudaGraphExec_t executable_;
  int64_t bytes_;
};

}  // namespace

Result<std::unique_ptr<Stream>> CudaStream::create(CudaDevice& device) {
  std::unique_ptr<CudaStream> stream(new CudaStream(device));
  RIDGE_TRY(
      cuda_status(cudaStreamCreateWithFlags(&stream->stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
  RIDGE_ASSIGN(stream->arrivals_, device.allocate(kArrivals * 4));
  RIDGE_TRY(cuda_status(cudaMemset(stream->arrivals(), 0, kArrivals * 4), "cudaMemset"));
  if (kChecked) {
    RIDGE_ASSIGN(stream->fault_, device.allocate(sizeof(Fault)));
    RIDGE_TRY(cuda_status(cudaMemset(stream->fault_.data(), 0, sizeof(Fault)), "cudaMemset"));
  }
  RIDGE_TRY(cuda_status(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  return std::unique_ptr<Stream>(std::move(stream));
}

CudaStream::~CudaStream() {
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

Status CudaStream::synchronize() {
  RIDGE_TRY(cuda_status(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"));
  return read_fault();
}
Status CudaStream::upload(void* to, const void* from, int64_t bytes) {
  return cuda_status(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_),
                     "cudaMemcpyAsync to the device");
}
Status CudaStream::download(void* to, const void* from, int64_t bytes) {
  return cuda_status(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
                     "cudaMemcpyAsync from the device");
}
Result<std::unique_ptr<Event>> CudaStream::create_event() {
  return CudaEvent::create();
}
Status CudaStream::record(Event& event) {
  return cuda_status(cudaEventRecord(static_cast<CudaEvent&>(event).native(), stream_), "cudaEventRecord");
}

Status CudaStream::begin_recording() {
  return cuda_status(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                     "cudaStreamBeginCapture");
}
Result<std::unique_ptr<Graph>> CudaStream::end_recording() {
  cudaGraph_t graph = nullptr;
  RIDGE_TRY(cuda_status(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture"));
  cudaGraphExec_t executable = nullptr;
  const int64_t before = free_bytes();
  const Status made = cuda_status(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const int64_t taken = std::max<int64_t>(0, before - free_bytes());
  (void)cudaGraphDestroy(graph);
  RIDGE_TRY(made);
  return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(executable, taken));
}
Status CudaStream::launch(Graph& graph) {
  return cuda_status(cudaGraphLaunch(static_cast<CudaGraph&>(graph).native(), stream_), "cudaGraphLaunch");
}

Status CudaStream::prepare_stamps(int64_t count) {
  if (stamps_.bytes() < count * 8) {
    // Recorded calls hold the old address: room for the longest plan from the start.
    constexpr int64_t kRoom = 1 << 14;
    if (stamps_.data() != nullptr || count > kRoom)
      return resource_exhausted("a step has ", count, " calls, ", kRoom, " can be timed");
    RIDGE_ASSIGN(stamps_, device_.allocate(kRoom * 8));
  }
  stamp_count_ = count;
  return cuda_status(cudaMemsetAsync(stamps_.data(), 0xff, static_cast<size_t>(count) * 8, stream_),
                     "cudaMemsetAsync");
}
void CudaStream::stamp_next(int64_t index) {
  g_next_stamp = stamp(index);
}
Status CudaStream::stamp_now(int64_t index) {
  stamp_next(index);
  return launch_stamp(stream_);
}
Status CudaStream::read_stamps(std::vector<int64_t>* stamps) {
  stamps->resize(static_cast<size_t>(stamp_count_));
  RIDGE_TRY(synchronize());
  RIDGE_TRY(device_.download(stamps->data(), stamps_.data(), stamp_count_ * 8));
  // A call that launched nothing took no time: its start is the next one's.
  for (size_t i = stamps->size() - 1; i-- > 0;)
    if ((*stamps)[i] < 0 || (*stamps)[i] > (*stamps)[i + 1]) (*stamps)[i] = (*stamps)[i + 1];
  return {};
}

void CudaStream::open_range(const char* name) {
  nvtxRangePushA(name);
}
void CudaStream::close_range() {
  nvtxRangePop();
}

void CudaStream::open_call(const char* op, std::string_view label) {
  open_range(op);
  if (!kChecked) return;
  const std::pair<std::string, std::string> name(op, label);
  auto known = std::find(calls_.begin(), calls_.end(), name);
  if (known == calls_.end()) known = calls_.insert(known, name);
  g_fault_place = {static_cast<Fault*>(fault_.data()), static_cast<int32_t>(known - calls_.begin())};
}
void CudaStream::close_call() {
  g_fault_place = {};
  close_range();
}

Status CudaStream::read_fault() {
  if (!kChecked) return {};
  Fault fault;
  RIDGE_TRY(device_.download(&fault, fault_.data(), sizeof fault));
  if (fault.raised == 0) return {};
  RIDGE_TRY(
      device_.download(&fault, fault_.data(), sizeof fault));  // whole, now that it is known to be there
  RIDGE_TRY(cuda_status(cudaMemset(fault_.data(), 0, sizeof fault), "cudaMemset"));
  RIDGE_TRY(cuda_status(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize"));
  const auto& [op, label] = calls_[static_cast<size_t>(fault.call)];
  const Status found = invalid_argument(fault_text(fault)).within(op);
  return label == op ? found : found.within(label);
}

}  // namespace ridge
