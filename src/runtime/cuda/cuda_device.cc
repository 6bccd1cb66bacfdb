#include "runtime/cuda/cuda_device.h"

#include <algorithm>

#include "runtime/backends.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/usable_gpu.h"

namespace ridge {

namespace {

// Nobody is left to hand an error to; one that matters shows at the next call.
void release(void* data, int64_t) {
  (void)cudaDeviceSynchronize();  // calls on any stream may still use it, and the pool gives it out again
  (void)cudaFreeAsync(data, nullptr);
}
void release_staging(void* data, int64_t) {
  (void)cudaFreeHost(data);
}

Result<int> count_gpus() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0)
    return not_found("no CUDA device: ",
                     error == cudaSuccess ? "the driver lists none" : cudaGetErrorString(error));
  return count;
}

std::string version_text(int version) {  // 13000
  return text(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

Status cuda_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  const Code code = error == cudaErrorMemoryAllocation ? Code::kResourceExhausted : Code::kInternal;
  return {code, text(call, ": ", cudaGetErrorName(error), ", ", cudaGetErrorString(error))};
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(int ordinal) {
  RIDGE_ASSIGN(const int count, count_gpus());
  if (ordinal < 0 || ordinal >= count)
    return invalid_argument("CUDA device ", ordinal, " does not exist, there are ", count);
  cudaDeviceProp properties;
  RIDGE_TRY(cuda_status(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties"));
  RIDGE_TRY(usable_gpu(properties.name, properties.major, properties.minor));
  RIDGE_TRY(cuda_status(cudaSetDevice(ordinal), "cudaSetDevice"));
  auto device = std::make_unique<CudaDevice>();
  device->ordinal_ = ordinal;
  device->multiprocessors_ = properties.multiProcessorCount;
  RIDGE_TRY(cuda_status(cudaDeviceGetDefaultMemPool(&device->pool_, ordinal), "cudaDeviceGetDefaultMemPool"));
  uint64_t keep = UINT64_MAX;
  RIDGE_TRY(cuda_status(cudaMemPoolSetAttribute(device->pool_, cudaMemPoolAttrReleaseThreshold, &keep),
                        "cudaMemPoolSetAttribute"));
  device->name_ = properties.name;
  device->description_ = text(properties.name, ", ", properties.multiProcessorCount, " multiprocessors, ",
                              static_cast<int64_t>(properties.totalGlobalMem >> 20), " MiB");
  return device;
}

Result<std::unique_ptr<Stream>> CudaDevice::create_stream() {
  return CudaStream::create(*this);
}

Result<MemoryRoom> CudaDevice::room() const {
  size_t free = 0, total = 0;
  RIDGE_TRY(cuda_status(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  uint64_t reserved = 0, used = 0;
  RIDGE_TRY(cuda_status(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved),
                        "cudaMemPoolGetAttribute"));
  RIDGE_TRY(cuda_status(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used),
                        "cudaMemPoolGetAttribute"));
  return MemoryRoom{static_cast<int64_t>(free + (reserved - used)),
                    text("free memory of ", name_, ", of ", total >> 20, " MiB")};
}

int64_t CudaDevice::bytes_in_use() const {
  uint64_t used = 0;
  return cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess
             ? static_cast<int64_t>(used)
             : -1;
}

Result<Buffer> CudaDevice::allocate(int64_t bytes) {
  if (bytes < 0) return invalid_argument("allocation of ", bytes, " bytes");
  void* data = nullptr;
  Status s = cuda_status(cudaMallocAsync(&data, static_cast<size_t>(std::max<int64_t>(bytes, 16)), nullptr),
                         "cudaMallocAsync");
  if (s.ok()) s = cuda_status(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  if (!s.ok()) return s.within(text(bytes, " bytes of GPU memory"));
  return Buffer(data, bytes, release);
}

Result<Buffer> CudaDevice::allocate_staging(int64_t bytes) {
  if (bytes < 0) return invalid_argument("allocation of ", bytes, " bytes");
  void* data = nullptr;
  if (Status s = cuda_status(
          cudaHostAlloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 16)), cudaHostAllocPortable),
          "cudaHostAlloc");
      !s.ok())
    return s.within(text(bytes, " bytes of pinned host memory"));
  return Buffer(data, bytes, release_staging);
}

Status CudaDevice::upload(void* to, const void* from, int64_t bytes) {
  RIDGE_TRY(cuda_status(cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice),
                        "cudaMemcpy to the device"));
  // From pageable memory it returns when the bytes are staged, and streams of ours do not wait for the null
  // one.
  return cuda_status(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}
Status CudaDevice::download(void* to, const void* from, int64_t bytes) {
  return cuda_status(cudaMemcpy(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost),
                     "cudaMemcpy from the device");
}

Result<std::unique_ptr<Device>> create_cuda_device(const DeviceOptions& options) {
  RIDGE_ASSIGN(auto device, CudaDevice::create(options.ordinal));
  return std::unique_ptr<Device>(std::move(device));
}

std::vector<std::string> survey_cuda() {
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);  // 0 without one, which the line then says
  (void)cudaRuntimeGetVersion(&runtime);
  std::vector<std::string> lines = {text("built with CUDA ", version_text(runtime), ", the driver speaks ",
                                         driver == 0 ? "none: there is no driver" : version_text(driver))};
  const CublasLt& cublaslt = CublasLt::used();
  lines.push_back(
      cublaslt.missing().empty()
          ? text(cublaslt.describe(), ": linears of prompts with bf16 weights and bf16 activations")
          : text(cublaslt.describe(), "; linears of prompts use ridge's own kernels"));
  const auto count = count_gpus();
  if (!count.ok()) {
    lines.push_back(count.status().message());
    return lines;
  }
  for (int i = 0; i < *count; ++i) {
    cudaDeviceProp p;
    const Status read = cuda_status(cudaGetDeviceProperties(&p, i), "cudaGetDeviceProperties");
    const Status usable = read.ok() ? usable_gpu(p.name, p.major, p.minor) : read;
    lines.push_back(usable.ok()
                        ? text("GPU ", i, ": ", p.name, ", ", p.multiProcessorCount, " multiprocessors, ",
                               p.totalGlobalMem >> 20, " MiB, L2 ", p.l2CacheSize >> 20, " MiB")
                        : text("GPU ", i, " would be declined: ", usable.message()));
  }
  return lines;
}

}  // namespace ridge
