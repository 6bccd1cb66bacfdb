#pragma once
// cuBLASLt, NVIDIA's library of matrix products: loaded at run time where the machine has it, so that neither
// a build nor a machine needs it. Without it, or where it has no algorithm, callers use kernels of their own.

#include <cuda_runtime_api.h>

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/decline.h"
#include "base/dtype.h"
#include "base/status.h"

namespace ridge {

/// y[tokens, out] = x[tokens, in] · w[out, in]ᵀ + bias[out] + residual[tokens, out], sums in f32.
struct MatmulShape {
  DType type = kBF16;   // of x and w: f16 or bf16
  DType y_type = kF32;  // of y, bias and residual: f32, or `type`
  bool bias = false, residual = false;
  int64_t tokens = 0, out = 0, in = 0;                                    // none is 0
  int64_t x_stride = 0, w_stride = 0, y_stride = 0, residual_stride = 0;  // elements between rows
  // Bytes, powers of two up to 16, that the addresses of y and of residual are multiples of; those of x, w
  // and their rows, and of bias, are of 16.
  int32_t y_alignment = 16, residual_alignment = 16;
  auto operator<=>(const MatmulShape&) const = default;
};
struct MatmulOperands {
  void* y = nullptr;
  const void *x = nullptr, *w = nullptr, *bias = nullptr;
  const void* residual = nullptr;  // may be y, with its stride
};

/// One shape and an algorithm for it. The same bits for the same operands each time: its sums run in an order
/// that the algorithm fixes.
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual int64_t workspace_bytes() const = 0;
  /// Queues it; the workspace is aligned to 256 bytes. Can be recorded in a graph. From several threads too.
  /// Errors: kInternal, naming call, shape and the library's status.
  virtual Status run(cudaStream_t stream, const MatmulOperands& operands, void* workspace) const = 0;
};

/// What an algorithm may do.
struct MatmulLimits {
  /// The most workspace; the default is NVIDIA's advice for Hopper (cuBLAS documentation,
  /// cublasSetWorkspace).
  int64_t workspace_bytes = int64_t{32} << 20;
  /// Parts of a sum along `in` may be added in y, or rounded to its type before they are.
  bool any_reduction = false;
};

class CublasLt {
 public:
  /// least_tokens() where nothing else is said: up to 64 tokens, weights are read once whatever is
  /// done, by kernels that overlap their neighbours (docs/kernels/linear.md).
  static constexpr int64_t kLeastTokens = 65;

  /// Loads the library `named`; null: what the loader finds by its name; "": none.
  explicit CublasLt(const char* named, int64_t least_tokens = kLeastTokens);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// That which the operators' kernels ask: named by the environment's RIDGE_CUBLASLT, loaded at the first
  /// call.
  static CublasLt& used();
  /// Its least_tokens(), without loading it.
  static int64_t used_from();
  /// For tests and benches: another one from now on, or with null that of the environment again. Not while
  /// calls are made.
  static void use(CublasLt* other);

  /// "" once it is loaded, else why it is not there.
  const std::string& missing() const { return missing_; }
  /// "cuBLASLt 13.1.0 of libcublasLt.so.13", or why it is not there.
  std::string describe() const;
  /// Rows of x from which on the kernels ask for it.
  int64_t least_tokens() const { return least_tokens_; }

  /// The library's own first choice for a shape on the calling thread's device, asked for once and kept as
  /// long as this lives: host work alone, so it may happen while calls are recorded. Errors: kDeclined, with
  /// the reason.
  Result<const Matmul*> find(const MatmulShape& shape);
  /// Up to `count` of its choices, best first as it thinks. Errors: find()'s.
  Result<std::vector<std::unique_ptr<Matmul>>> candidates(const MatmulShape& shape, int count,
                                                          const MatmulLimits& limits);

 private:
  struct Api;
  struct Key {
    int device;
    MatmulShape shape;
    auto operator<=>(const Key&) const = default;
  };
  struct Found {
    Status status;
    std::unique_ptr<Matmul> matmul;
  };
  class Call;
  std::string load(const char* named);
  Result<void*> handle_of(int device);
  Result<std::vector<std::unique_ptr<Matmul>>> ask(int device, const MatmulShape& shape, int count,
                                                   const MatmulLimits& limits);

  std::unique_ptr<Api> api_;
  std::string missing_, path_, version_;
  int64_t least_tokens_;
  std::mutex mutex_;  // of what follows
  std::map<int, void*> handles_;
  std::map<Key, Found> found_;
};

}  // namespace ridge
