#include "cases/device_case.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "base/text.h"
#include "runtime/cuda/faults.h"

namespace ridge::cases {

namespace {

constexpr int64_t kWorkspaceBytes = int64_t{512} << 20;

}  // namespace

Bench::Bench(CudaDevice& device) : device_(device) {
  stream_ = &another_stream();
}

CudaStream& Bench::another_stream() {
  auto stream = device_.create_stream();
  must(stream.status());
  auto workspace = device_.allocate(kWorkspaceBytes);
  must(workspace.status());
  must(cuda_status(cudaMemset(workspace->data(), 0xff, static_cast<size_t>(kWorkspaceBytes)), "cudaMemset"));
  (*stream)->set_workspace(workspace->data(), kWorkspaceBytes);
  workspaces_.push_back(workspace.take());
  streams_.push_back(stream.take());
  return as_cuda(*streams_.back());
}

void* Bench::memory(int64_t bytes) {
  auto buffer = device_.allocate(bytes);
  must(buffer.status());
  memory_.push_back(buffer.take());
  return memory_.back().data();
}

Tensor Bench::upload_as(DType dtype, const std::vector<float>& values, Shape shape) {
  if (dtype == kF32) return upload(values, shape);
  std::vector<uint16_t> bits;
  for (const float v : values) bits.push_back(dtype == kBF16 ? to_bf16(v).bits : to_f16(v).bits);
  void* at = memory(static_cast<int64_t>(bits.size()) * 2);
  must(device_.upload(at, bits.data(), static_cast<int64_t>(bits.size()) * 2));
  return Tensor(at, dtype, shape);
}

Tensor Bench::output(DType dtype, Shape shape) {
  const int64_t bytes = shape.elements() * dtype_block_bytes(dtype);
  void* at = memory(bytes);
  must(cuda_status(cudaMemset(at, 0xff, static_cast<size_t>(bytes)), "cudaMemset"));
  return Tensor(at, dtype, shape);
}

std::vector<float> Bench::floats(const Tensor& t) {
  if (t.dtype == kF32) return download<float>(t);
  std::vector<float> values;
  if (t.dtype == kBF16)
    for (const bf16 v : download<bf16>(t)) values.push_back(to_f32(v));
  else
    for (const f16 v : download<f16>(t)) values.push_back(to_f32(v));
  return values;
}

void Bench::expect(bool good, const std::string& what) {
  if (good) return;
  if (failures_++ == 0) first_failure_ = what;
}
void Bench::expect_near(double got, double want, double bound, const std::string& what) {
  const bool same = got == want || std::fabs(got - want) <= bound;  // infinities are equal
  expect(same, text(what, " is ", got, ", want ", want, " within ", bound));
}
void Bench::must(const Status& status) {
  if (!status.ok()) expect(false, std::string(status.message()));
}
/// Copies and fills go through the default stream, which ours does not wait for.
void Bench::settle() {
  must(cuda_status(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize"));
}
void Bench::run(const std::function<Status(CudaStream&)>& call) {
  settle();
  must(call(*stream_));
  const Status done = stream_->synchronize();
  if (const std::string wanted = std::exchange(fault_, ""); kChecked && !wanted.empty())
    expect(done.message() == wanted, text("found \"", done.message(), "\", not \"", wanted, "\""));
  else
    must(done);
}
double Bench::replay_us(const std::function<Status(CudaStream&)>& call, int times) {
  settle();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  must(cuda_status(cudaStreamBeginCapture(stream_->native(), cudaStreamCaptureModeThreadLocal),
                   "cudaStreamBeginCapture"));
  must(call(*stream_));
  must(cuda_status(cudaStreamEndCapture(stream_->native(), &graph), "cudaStreamEndCapture"));
  must(cuda_status(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate"));
  cudaEvent_t begin = nullptr, end = nullptr;
  must(cuda_status(cudaEventCreate(&begin), "cudaEventCreate")),
      must(cuda_status(cudaEventCreate(&end), "cudaEventCreate"));
  must(cuda_status(cudaEventRecord(begin, stream_->native()), "cudaEventRecord"));
  for (int i = 0; i < times; ++i)
    must(cuda_status(cudaGraphLaunch(ready, stream_->native()), "cudaGraphLaunch"));
  must(cuda_status(cudaEventRecord(end, stream_->native()), "cudaEventRecord"));
  must(stream_->synchronize());
  float ms = 0;
  must(cuda_status(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime"));
  (void)cudaEventDestroy(begin), (void)cudaEventDestroy(end);
  (void)cudaGraphExecDestroy(ready), (void)cudaGraphDestroy(graph);
  return 1000.0 * static_cast<double>(ms) / times;
}
void Bench::begin() {
  free_memory();
  failures_ = 0, first_failure_.clear(), fault_.clear();
}

}  // namespace ridge::cases
