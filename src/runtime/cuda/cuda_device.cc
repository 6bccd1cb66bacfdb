#include "runtime/cuda/cuda_device.h"

#include <algorithm>

namespace ridge {

namespace {

void release(void* data, int64_t) {
  // Nobody is left to hand an error to; one that matters shows at the next call.
  (void)cudaFree(data);
}

}  // namespace

Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  const Code code = error == cudaErrorMemoryAllocation ? Code::kResourceExhausted : Code::kInternal;
  return {code, text(call, ": ", cudaGetErrorName(error), ", ", cudaGetErrorString(error))};
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(int ordinal) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0)
    return not_found("no CUDA device: ",
                     error == cudaSuccess ? "the driver lists none" : cudaGetErrorString(error));
  if (ordinal < 0 || ordinal >= count)
    return invalid_argument("CUDA device ", ordinal, " does not exist, there are ", count);
  cudaDeviceProp properties;
  RIDGE_TRY(cuda_status(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties"));
  if (properties.major != 9 || properties.minor != 0)
    return declined(properties.name, " has compute capability ", properties.major, ".", properties.minor,
                    ", the CUDA kernels need 9.0 (H100, H200)");
  RIDGE_TRY(cuda_status(cudaSetDevice(ordinal), "cudaSetDevice"));
  auto device = std::make_unique<CudaDevice>();
  device->ordinal_ = ordinal;
  device->multiprocessors_ = properties.multiProcessorCount;
  device->description_ = text(properties.name, ", ", properties.multiProcessorCount, " multiprocessors, ",
                              static_cast<int64_t>(properties.totalGlobalMem >> 20), " MiB");
  return device;
}

Result<std::unique_ptr<Stream>> CudaDevice::create_stream() {
  return CudaStream::create(*this);
}

Result<Buffer> CudaDevice::allocate(int64_t bytes) {
  if (bytes < 0) return invalid_argument("allocation of ", bytes, " bytes");
  void* data = nullptr;
  if (Status s =
          cuda_status(cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 16))), "cudaMalloc");
      !s.ok())
    return s.within(text(bytes, " bytes of GPU memory"));
  return Buffer(data, bytes, release);
}

Status CudaDevice::upload(void* to, const void* from, int64_t bytes) {
  return cuda_status(cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice),
                     "cudaMemcpy to the device");
}
Status CudaDevice::download(void* to, const void* from, int64_t bytes) {
  return cuda_status(cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost),
                     "cudaMemcpy from the device");
}

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

}  // namespace ridge
