#include "lab/probe.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <ctime>

#include "account/recorder.h"
#include "lab/formats_of.h"
#include "lab/probe_loops.h"
#include "ops/any_operator.h"

namespace ridge {

namespace {

ProbeLoops loops_of(Isa isa) {
  return isa == Isa::avx512 ? avx512::probe_loops()
         : isa == Isa::avx2 ? avx2::probe_loops()
                            : scalar::probe_loops();
}

std::string today() {
  char out[40];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return out;
}

class Probe {
 public:
  Probe(const ProbeOptions& options, CpuDevice& device, Buffer memory)
      : o_(options), device_(device), loops_(loops_of(device.target().isa)), memory_(std::move(memory)) {}

  ThreadCeilings measure(int threads) {
    ThreadCeilings c;
    c.threads = threads;
    for (int64_t bytes = 32 << 10; bytes <= o_.largest_bytes; bytes *= 2)
      c.curve.push_back(bandwidth(threads, bytes));
    for (int64_t bytes = 16 << 10; bytes <= 16 << 20; bytes *= 4)
      c.pieces.push_back({bytes, piece(threads, bytes)});
    c.flops[static_cast<size_t>(Engine::kF32)] = arithmetic(threads, loops_.f32);
    c.flops[static_cast<size_t>(Engine::kBf16)] = arithmetic(threads, loops_.bf16);
    c.flops[static_cast<size_t>(Engine::kInt8)] = arithmetic(threads, loops_.int8);
    c.barrier_us = threads > 1 ? barrier(threads) : 0;
    return c;
  }

 private:
  /// The best rate of several rounds: units / seconds, where each round repeats `pass` for about the time of
  /// a point.
  template <class Pass>
  double best(double units_a_pass, const Pass& pass) {
    pass();
    const int64_t once_begin = now_ns();
    pass();
    const double once = std::max<double>(1, static_cast<double>(now_ns() - once_begin));
    constexpr int kRounds = 5;
    const auto repeats =
        static_cast<int64_t>(std::clamp(o_.seconds_per_point * 1e9 / kRounds / once, 1.0, 1e7));
    double least = HUGE_VAL;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t begin = now_ns();
      for (int64_t r = 0; r < repeats; ++r) pass();
      least = std::min(least, static_cast<double>(now_ns() - begin) / static_cast<double>(repeats));
    }
    return units_a_pass / least * 1e9;
  }

  std::byte* share(int thread, int64_t each) { return memory_.begin() + thread * each; }

  BandwidthPoint bandwidth(int threads, int64_t bytes) {
    BandwidthPoint p;
    p.bytes = bytes;
    const int64_t each = bytes / threads / 1024 * 1024;
    const auto total = static_cast<double>(each * threads);
    // Small sets are passed several times between meetings, or the meeting would be what is measured.
    const int64_t inner = std::max<int64_t>(1, (1 << 20) / each);
    const auto run = [&](auto body) {
      device_.team().run(threads, [&](int t) {
        for (int64_t i = 0; i < inner; ++i) body(share(t, each));
      });
    };
    std::atomic<float> sink{0};
    const auto passes = static_cast<double>(inner);
    p.read = best(total * passes,
                  [&] {
                    run([&](std::byte* m) { sink.store(loops_.read(m, each), std::memory_order_relaxed); });
                  }) /
             1e9;
    p.write = best(total * passes, [&] { run([&](std::byte* m) { loops_.write(m, each); }); }) / 1e9;
    p.copy =
        best(total * passes, [&] { run([&](std::byte* m) { loops_.copy(m, m + each / 2, each / 2); }); }) /
        1e9;
    report("bandwidth");
    return p;
  }

  /// Reads all of the memory, `bytes` between two meetings; GB/s.
  double piece(int threads, int64_t bytes) {
    const int64_t each = bytes / threads / 1024 * 1024, pieces = memory_.bytes() / bytes;
    std::atomic<float> sink{0};
    const double rate = best(static_cast<double>(each * threads * pieces), [&] {
      for (int64_t i = 0; i < pieces; ++i)
        device_.team().run(threads, [&](int t) {
          sink.store(loops_.read(memory_.begin() + i * bytes + t * each, each), std::memory_order_relaxed);
        });
    });
    report("pieces");
    return rate / 1e9;
  }

  double arithmetic(int threads, int64_t (*loop)(int64_t, float*)) {
    constexpr int64_t kRounds = 20000;
    float sink = 1;
    const auto operations = static_cast<double>(loop(1, &sink)) * kRounds * threads;
    if (operations == 0) return 0;
    const double rate = best(operations, [&] {
      device_.team().run(threads, [&](int) {
        float mine = 1;
        loop(kRounds, &mine);
        std::atomic<float> keep{mine};
      });
    });
    report("arithmetic");
    return rate;
  }

  double barrier(int threads) {
    return 1e6 / best(1, [&] { device_.team().run(threads, [](int) {}); });
  }

  void report(const char* what) {
    if (o_.progress) o_.progress(what, std::min(0.99, ++done_ / 70.0));
  }

  const ProbeOptions& o_;
  CpuDevice& device_;
  ProbeLoops loops_;
  Buffer memory_;
  double done_ = 0;
};

/// linear's kernels with weights and activations in L1 and L2: for each weight type, activations in f32 and,
/// where the type is quantized, in 8 bits; a row of the account that is slower than memory allows is compared
/// with these.
void measure_kernels(CpuDevice& device, int threads, double seconds, std::vector<KernelRate>* out) {
  AnyOperator* linear = find_operator("linear");
  if (linear == nullptr) return;
  const auto stream = device.create_stream().take();
  for (const OperandInfo& w : linear->operands()) {
    if (std::string_view(w.name) != "w") continue;
    for (const DType type : w.dtypes)
      for (const DType x : {kF32, kI8})
        for (const int64_t rows : {int64_t{1}, int64_t{8}, int64_t{128}}) {
          if (x == kI8 && !is_block_quantized(type)) continue;
          std::map<std::string, DType> dtypes{{"w", type}, {"x", x}};
          if (x == kI8) dtypes["x_scale"] = kF32;
          // [out, in]: 32 rows a thread, which all threads together find in their own L1 and L2.
          const int64_t in = 512, columns = 32 * threads;
          std::vector<Buffer> storage;
          auto call =
              linear->example(device.target(), linear_case(*linear, rows, columns, in), dtypes, 1, &storage);
          if (!call.ok()) continue;
          const auto selection = linear->select(device.target(), call->args.get());
          if (!selection.ok()) continue;
          Buffer workspace = Buffer::allocate(selection->workspace_bytes).take();
          stream->set_workspace(workspace.data(), workspace.bytes());
          double least = HUGE_VAL;
          const int64_t stop = now_ns() + static_cast<int64_t>(seconds * 1e9);
          for (int round = 0; round < 4 || now_ns() < stop; ++round) {
            constexpr int kCalls = 8;
            const int64_t begin = now_ns();
            for (int i = 0; i < kCalls; ++i) linear->run(*selection, *stream, call->args.get()).ignore();
            least = std::min(least, static_cast<double>(now_ns() - begin) / kCalls);
          }
          const double flops = 2.0 * static_cast<double>(rows * columns * in);
          out->push_back({"linear", linear->kernel_name(*selection), formats_of(*call), rows, threads,
                          flops / least * 1e9});
        }
  }
}

}  // namespace

Result<Machine> probe_cpu(const ProbeOptions& options) {
  const int64_t begin = now_ns();
  const int threads = options.threads == 0 ? allowed_cores() : options.threads;
  CpuOptions cpu;
  cpu.threads = threads, cpu.isa = options.isa;
  RIDGE_ASSIGN(const auto device, CpuDevice::create(cpu));
  RIDGE_ASSIGN(Buffer memory, Buffer::allocate(options.largest_bytes, Pages::kHuge));
  std::memset(memory.data(), 1, static_cast<size_t>(memory.bytes()));
  Machine m;
  const MachineIdentity id = this_machine(isa_name(device->target().isa));
  m.cpu = id.cpu, m.isa = id.isa, m.build = id.build, m.compiler = text("gcc-compatible ", __VERSION__);
  m.commit = RIDGE_COMMIT, m.date = today(), m.cores = allowed_cores(), m.governor = "as found";
  Probe probe(options, *device, std::move(memory));
  for (int t = 1; t <= threads; t = t == 1 && threads > 1 ? threads : t + threads)
    m.by_threads.push_back(probe.measure(t));
  for (const ThreadCeilings& t : m.by_threads) {
    CpuOptions one = cpu;
    one.threads = t.threads, one.crossover_bytes = 0;
    RIDGE_ASSIGN(const auto part, CpuDevice::create(one));
    measure_kernels(*part, t.threads, options.seconds_per_point / 4, &m.kernels);
  }
  if (options.progress) options.progress("done", 1);
  m.seconds = static_cast<double>(now_ns() - begin) / 1e9;
  return m;
}

}  // namespace ridge
