#include "bench_copies.h"

#include "base/checked.h"
#include "base/stop.h"

namespace ridge::app {

namespace {

constexpr int64_t kAlignment = 256;

/// body(index of the operand, its offset in a copy) for each operand that is there; returns the copy's bytes.
template <class Body>
int64_t lay_out(const AnyCall& call, const Body& body) {
  int64_t end = 0;
  for (int i = 0; i < static_cast<int>(call.op->operands().size()); ++i)
    if (const Tensor& t = call.op->operand(call.args.get(), i)) {
      body(i, end);
      end += round_up(t.bytes(), kAlignment);
    }
  return end;
}

}  // namespace

int64_t copy_bytes(const AnyCall& call) {
  return lay_out(call, [](int, int64_t) {});
}

Result<CallCopies> copies_of(Device& device, const AnyCall& call, int64_t count) {
  CallCopies c;
  const int64_t each = copy_bytes(call);
  RIDGE_ASSIGN(c.memory, device.allocate(each * count));
  for (int64_t copy = 0; copy < count; ++copy) {
    RIDGE_TRY(check_stop());
    AnyCall mine{call.op, call.op->clone_args(call.args.get()), call.label};
    Status copied;
    lay_out(call, [&](int i, int64_t offset) {
      Tensor& t = call.op->operand(mine.args.get(), i);
      void* const there = c.memory.begin() + copy * each + offset;
      if (copied.ok()) copied = device.upload(there, t.data, t.bytes());
      t.data = there;
    });
    RIDGE_TRY(copied);
    c.calls.push_back(std::move(mine));
  }
  return c;
}

}  // namespace ridge::app
