#include "runtime/cuda/cublaslt.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "runtime/cuda/cuda_device.h"

// CUDA's toolkit can be installed without the library's header: such a build declines.
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define RIDGE_HAS_CUBLASLT_HEADER
#endif

namespace ridge {

namespace {

std::atomic<CublasLt*> g_other{nullptr};

}  // namespace

CublasLt& CublasLt::used() {
  if (CublasLt* const other = g_other.load()) return *other;
  // Never destroyed: at the end of the process the driver may be gone before it.
  static CublasLt* const own = new CublasLt(std::getenv("RIDGE_CUBLASLT"));
  return *own;
}
int64_t CublasLt::used_from() {
  const CublasLt* const other = g_other.load();
  return other != nullptr ? other->least_tokens() : kLeastTokens;
}
void CublasLt::use(CublasLt* other) {
  g_other.store(other);
}

std::string CublasLt::describe() const {
  return missing_.empty() ? text("cuBLASLt ", version_, " of ", path_) : missing_;
}

Result<const Matmul*> CublasLt::find(const MatmulShape& shape) {
  if (!missing_.empty()) return declined(missing_);
  int device = 0;
  if (const Status s = cuda_status(cudaGetDevice(&device), "cudaGetDevice"); !s.ok())
    return declined(s.message());
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = found_.try_emplace({device, shape});
  Found& found = at->second;
  if (is_new) {
    auto asked = ask(device, shape, 1, {});
    if (asked.ok())
      found.matmul = std::move(asked->front());
    else
      found.status = asked.status();
  }
  if (!found.status.ok()) return found.status;
  return static_cast<const Matmul*>(found.matmul.get());
}

Result<std::vector<std::unique_ptr<Matmul>>> CublasLt::candidates(const MatmulShape& shape, int count,
                                                                  const MatmulLimits& limits) {
  if (!missing_.empty()) return declined(missing_);
  int device = 0;
  RIDGE_TRY(cuda_status(cudaGetDevice(&device), "cudaGetDevice"));
  const std::lock_guard lock(mutex_);
  return ask(device, shape, count, limits);
}

#ifdef RIDGE_HAS_CUBLASLT_HEADER

struct CublasLt::Api {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) get_version;
  decltype(&cublasLtGetStatusName) status_name;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;

  /// "" or the name of a function that the library has not.
  const char* fill(void* library) {
    const char* lacks = "";
    const auto get = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) lacks = name;
    };
    get("cublasLtCreate", create), get("cublasLtDestroy", destroy);
    get("cublasLtGetVersion", get_version), get("cublasLtGetStatusName", status_name);
    get("cublasLtMatmul", matmul), get("cublasLtMatmulAlgoGetHeuristic", heuristic);
    get("cublasLtMatmulDescCreate", desc_create), get("cublasLtMatmulDescDestroy", desc_destroy);
    get("cublasLtMatmulDescSetAttribute", desc_set);
    get("cublasLtMatrixLayoutCreate", layout_create), get("cublasLtMatrixLayoutDestroy", layout_destroy);
    get("cublasLtMatmulPreferenceCreate", preference_create);
    get("cublasLtMatmulPreferenceDestroy", preference_destroy);
    get("cublasLtMatmulPreferenceSetAttribute", preference_set);
    return lacks;
  }
};

namespace {

cudaDataType_t type_of(DType dtype) {
  return dtype == kF32 ? CUDA_R_32F : dtype == kF16 ? CUDA_R_16F : CUDA_R_16BF;
}

std::string name_of(const MatmulShape& s) {
  return text(s.tokens, " x ", s.out, " x ", s.in, " of ", dtype_name(s.type), " into ", dtype_name(s.y_type),
              s.bias ? " with bias" : "", s.residual ? " with residual" : "");
}

}  // namespace

/// The library stores by columns, so that our rows are its columns: yᵀ[out, tokens] = w · xᵀ, w as [in, out]
/// transposed.
class CublasLt::Call final : public Matmul {
 public:
  Call(const Api& api, cublasLtHandle_t handle, const MatmulShape& shape)
      : api_(api), handle_(handle), shape_(shape) {}
  ~Call() override {
    for (const cublasLtMatrixLayout_t layout : {w_, x_, residual_, y_})
      if (layout != nullptr) (void)api_.layout_destroy(layout);
    if (desc_ != nullptr) (void)api_.desc_destroy(desc_);
  }

  /// Desc and layouts. Errors: kDeclined.
  Status describe() {
    const MatmulShape& s = shape_;
    RIDGE_TRY(checked(api_.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate"));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    RIDGE_TRY(set(CUBLASLT_MATMUL_DESC_TRANSA, transposed));
    if (s.bias) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
      const cudaDataType_t type = type_of(s.y_type);
      RIDGE_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
      RIDGE_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type));
      // Its alignment counts when algorithms are chosen (cublasLt.h); nothing reads there.
      const void* const bias = reinterpret_cast<const void*>(uintptr_t{1} << 20);
      RIDGE_TRY(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    }
    RIDGE_TRY(layout(&w_, s.type, s.in, s.out, s.w_stride));
    RIDGE_TRY(layout(&x_, s.type, s.in, s.tokens, s.x_stride));
    if (s.residual) RIDGE_TRY(layout(&residual_, s.y_type, s.out, s.tokens, s.residual_stride));
    return layout(&y_, s.y_type, s.out, s.tokens, s.y_stride);
  }

  /// The library's choices. Errors: kDeclined.
  Result<std::vector<cublasLtMatmulHeuristicResult_t>> choices(int count, const MatmulLimits& limits) const {
    cublasLtMatmulPreference_t preference = nullptr;
    RIDGE_TRY(checked(api_.preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(count));
    int got = 0;
    Status asked = prefer(preference, limits);
    if (asked.ok())
      asked = checked(
          api_.heuristic(handle_, desc_, w_, x_, c_layout(), y_, preference, count, found.data(), &got),
          "cublasLtMatmulAlgoGetHeuristic");
    (void)api_.preference_destroy(preference);
    RIDGE_TRY(asked);
    found.resize(static_cast<size_t>(got));
    std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
    if (found.empty()) return declined("cuBLASLt has no algorithm for ", name_of(shape_));
    return found;
  }
  void take(const cublasLtMatmulHeuristicResult_t& choice) {
    algorithm_ = choice.algo, workspace_bytes_ = static_cast<int64_t>(choice.workspaceSize);
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }
  Status run(cudaStream_t stream, const MatmulOperands& o, void* workspace) const override {
    const float one = 1, beta = shape_.residual ? 1 : 0;
    // The bias lies in the description, which calls from several threads share.
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (shape_.bias) {
      lock.lock();
      status = api_.desc_set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &o.bias, sizeof o.bias);
    }
    if (status == CUBLAS_STATUS_SUCCESS)
      status = api_.matmul(handle_, desc_, &one, o.w, w_, o.x, x_, &beta, shape_.residual ? o.residual : o.y,
                           c_layout(), o.y, y_, &algorithm_, workspace, static_cast<size_t>(workspace_bytes_),
                           stream);
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return internal_error("cublasLtMatmul of ", name_of(shape_), ": ", api_.status_name(status));
  }

 private:
  Status checked(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return declined(call, " for ", name_of(shape_), ": ", api_.status_name(status));
  }
  template <class T>
  Status set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return checked(api_.desc_set(desc_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  Status layout(cublasLtMatrixLayout_t* made, DType type, int64_t rows, int64_t columns, int64_t stride) {
    return checked(api_.layout_create(made, type_of(type), static_cast<uint64_t>(rows),
                                      static_cast<uint64_t>(columns), stride),
                   "cublasLtMatrixLayoutCreate");
  }
  Status prefer(cublasLtMatmulPreference_t preference, const MatmulLimits& limits) const {
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return checked(api_.preference_set(preference, attribute, &value, sizeof value),
                     "cublasLtMatmulPreferenceSetAttribute");
    };
    const auto bytes = [](int32_t alignment) { return static_cast<uint32_t>(alignment); };
    const uint32_t inputs = 16;
    const auto workspace = static_cast<uint64_t>(limits.workspace_bytes);
    const uint32_t reductions =
        limits.any_reduction ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    RIDGE_TRY(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
    RIDGE_TRY(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
    RIDGE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, inputs));
    RIDGE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, inputs));
    RIDGE_TRY(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                  bytes(shape_.residual ? shape_.residual_alignment : shape_.y_alignment)));
    return set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes(shape_.y_alignment));
  }
  cublasLtMatrixLayout_t c_layout() const { return residual_ != nullptr ? residual_ : y_; }

  const Api& api_;
  cublasLtHandle_t handle_;
  MatmulShape shape_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, residual_ = nullptr, y_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  int64_t workspace_bytes_ = 0;
  mutable std::mutex mutex_;
};

CublasLt::CublasLt(const char* named, int64_t least_tokens) : least_tokens_(least_tokens) {
  missing_ = load(named);
}

// The library itself stays loaded: calls may still be under way on the device.
CublasLt::~CublasLt() {
  found_.clear();
  for (const auto& [device, handle] : handles_) (void)api_->destroy(static_cast<cublasLtHandle_t>(handle));
}

std::string CublasLt::load(const char* named) {
  if (named != nullptr && *named == 0) return "cuBLASLt is not used: RIDGE_CUBLASLT is empty";
  const std::string soname = text("libcublasLt.so.", CUBLAS_VER_MAJOR);
  std::vector<std::string> paths = {soname, "libcublasLt.so", "/usr/local/cuda/lib64/" + soname};
  if (named != nullptr) paths = {named};
  void* library = nullptr;
  std::string why;
  for (const std::string& path : paths) {
    if ((library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) != nullptr) {
      path_ = path;
      break;
    }
    const char* const error = dlerror();
    if (why.empty()) why = error != nullptr ? error : path;
  }
  if (library == nullptr) return text("cuBLASLt is not here: ", why, "; RIDGE_CUBLASLT names its library");
  auto api = std::make_unique<Api>();
  if (const char* const lacks = api->fill(library); *lacks != 0)
    return text("cuBLASLt is not here: ", path_, " has no ", lacks);
  const auto version = static_cast<int64_t>(api->get_version());
  version_ = text(version / 10000, ".", version / 100 % 100, ".", version % 100);
  if (version / 10000 != CUBLAS_VER_MAJOR)
    return text("cuBLASLt is not used: ", path_, " is version ", version_, ", this build needs ",
                CUBLAS_VER_MAJOR);
  api_ = std::move(api);
  return "";
}

Result<void*> CublasLt::handle_of(int device) {
  const auto known = handles_.find(device);
  if (known != handles_.end()) return known->second;
  cublasLtHandle_t handle = nullptr;
  if (const cublasStatus_t status = api_->create(&handle); status != CUBLAS_STATUS_SUCCESS)
    return declined("cublasLtCreate: ", api_->status_name(status));
  handles_.emplace(device, handle);
  return static_cast<void*>(handle);
}

Result<std::vector<std::unique_ptr<Matmul>>> CublasLt::ask(int device, const MatmulShape& shape, int count,
                                                           const MatmulLimits& limits) {
  RIDGE_ASSIGN(void* const handle, handle_of(device));
  const auto make = [&] {
    return std::make_unique<Call>(*api_, static_cast<cublasLtHandle_t>(handle), shape);
  };
  auto first = make();
  RIDGE_TRY(first->describe());
  RIDGE_ASSIGN(const auto choices, first->choices(count, limits));
  std::vector<std::unique_ptr<Matmul>> calls;
  for (const auto& choice : choices) {
    auto call = calls.empty() ? std::move(first) : make();
    if (!calls.empty()) RIDGE_TRY(call->describe());
    call->take(choice);
    calls.push_back(std::move(call));
  }
  return calls;
}

#else

struct CublasLt::Api {};

CublasLt::CublasLt(const char*, int64_t least_tokens)
    : missing_("cuBLASLt is not used: this was built without cublasLt.h"), least_tokens_(least_tokens) {}
CublasLt::~CublasLt() = default;
Result<std::vector<std::unique_ptr<Matmul>>> CublasLt::ask(int, const MatmulShape&, int,
                                                           const MatmulLimits&) {
  return declined(missing_);
}

#endif

}  // namespace ridge
