#include <nvtx3/nvToolsExt.h>

#include "runtime/cuda/cuda_device.h"
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

class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(cudaGraphExec_t executable) : executable_(executable) {}
  ~CudaGraph() override { (void)cudaGraphExecDestroy(executable_); }
  cudaGraphExec_t native() const { return executable_; }

 private:
  cudaGraphExec_t executable_;
};

}  // namespace

Result<std::unique_ptr<Stream>> CudaStream::create(CudaDevice& device) {
  std::unique_ptr<CudaStream> stream(new CudaStream(device));
  RIDGE_TRY(
      cuda_status(cudaStreamCreateWithFlags(&stream->stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
  RIDGE_ASSIGN(stream->arrivals_, device.allocate(kArrivals * 4));
  RIDGE_TRY(cuda_status(cudaMemset(stream->arrivals(), 0, kArrivals * 4), "cudaMemset"));
  RIDGE_TRY(cuda_status(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  return std::unique_ptr<Stream>(std::move(stream));
}

CudaStream::~CudaStream() {
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

Status CudaStream::synchronize() {
  return cuda_status(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
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
  const Status made = cuda_status(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  (void)cudaGraphDestroy(graph);
  RIDGE_TRY(made);
  return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(executable));
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

}  // namespace ridge
