#pragma once
// Calls of one operator in tests: a CPU device of a given width and instruction set, with the workspace that
// the call asks for.

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "ops/dispatch.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge::tests {

/// The instruction sets that this processor can run and this build has kernels for.
inline std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (parse_isa(isa_name(isa)).ok()) out.push_back(isa);
  return out;
}

class Cpu {
 public:
  explicit Cpu(Isa isa = Isa::none, int threads = 2) {
    CpuOptions options;
    options.threads = threads, options.isa = isa, options.crossover_bytes = 0;
    auto device = CpuDevice::create(options);
    EXPECT_TRUE(device.ok()) << device.status().message();
    device_ = device.take();
    stream_ = device_->create_stream().take();
  }
  Stream& stream() { return *stream_; }

  template <class A>
  Status call(const A& args) {
    AnyOperator& op = registered<A>();
    RIDGE_TRY(op.check(&args));
    RIDGE_ASSIGN(const Selection selection, op.select(stream_->target(), &args));
    EXPECT_GE(selection.kernel, 0) << op.name() << " fell back to the reference";
    // As many NaN as asked for, so that a partial that nobody wrote shows.
    std::vector<float> workspace(static_cast<size_t>(selection.workspace_bytes / 4 + 1),
                                 std::numeric_limits<float>::quiet_NaN());
    stream_->set_workspace(workspace.data(), selection.workspace_bytes);
    const Status status = run_eager(*stream_, op, &args);
    stream_->set_workspace(nullptr, 0);
    return status;
  }
  template <class A>
  Cost cost(const A& args) {
    AnyOperator& op = registered<A>();
    auto selection = op.select(stream_->target(), &args);
    EXPECT_TRUE(selection.ok());
    return op.cost(*selection, &args);
  }

 private:
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace ridge::tests
