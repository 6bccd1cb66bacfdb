// Times of thread counts; tolerant, since other work may be on the machine.

#include <ctime>

#include "account/recorder.h"
#include "base/pressure.h"
#include "engine/generate.h"
#include "runtime/cpu/cores.h"

namespace ridge {
namespace {

double cpu_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Spent {
  double wall = 0, cpu = 0, caller = 0;  // seconds; cpu: of all threads of the process
};

/// One answer of a model whose matrices are worth dividing.
struct Runner {
  explicit Runner(int threads) : tiny({.layers = 2, .hidden = 1024, .inner = 2048}, {.threads = threads}) {}
  Spent run() {
    EngineOptions o;
    o.kv.context = 512;
    const auto engine = engine_for(tiny, o);
    const int64_t begin = now_ns();
    const double cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), caller = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    generate(*engine, {request(random_prompt(64, 1), 24)});
    // Wall time last: being descheduled between two readings must not look like time that nobody spent.
    const double cpu_end = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID),
                 caller_end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    return {static_cast<double>(now_ns() - begin) * 1e-9, cpu_end - cpu, caller_end - caller};
  }
  TinyModel tiny;
};

/// The least of each over several runs.
void keep_best(const Spent& s, Spent* best) {
  best->wall = std::min(best->wall, s.wall), best->cpu = std::min(best->cpu, s.cpu);
}

TEST(Threads, K45_eight_on_two_cores_finish_within_three_times_two) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor: there are no two to share";
  cpu_set_t two;
  CPU_ZERO(&two);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &two);
  ASSERT_EQ(sched_setaffinity(0, sizeof two, &two), 0);  // threads started from here inherit it
  Spent with_two{1e9, 1e9, 0}, with_eight{1e9, 1e9, 0};
  {
    Runner a(2), b(8);
    a.run(), b.run();
    for (int i = 0; i < 7; ++i) keep_best(a.run(), &with_two), keep_best(b.run(), &with_eight);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  std::printf("2 threads %.1f ms (CPU %.1f), 8 threads %.1f ms (CPU %.1f)\n", with_two.wall * 1e3,
              with_two.cpu * 1e3, with_eight.wall * 1e3, with_eight.cpu * 1e3);
  // Waiters that spin without a bound would show as CPU time, whoever else is on the machine.
  EXPECT_LE(with_eight.cpu, 3 * with_two.cpu);
  // Wall time is the team's own only where nobody else takes the two cores.
  if (with_two.cpu < 1.5 * with_two.wall)
    GTEST_SKIP() << "the machine is busy: two threads had " << with_two.cpu / with_two.wall << " cores";
  EXPECT_LE(with_eight.wall, 3 * with_two.wall);
}

// Each thread's own processor time: with n threads, n of the process work, and no other does anything. Each
// about as long, where all of them have a core: the caller takes the part of a thread that has none.
TEST(Threads, K45_cpu_time_over_wall_time_follows_the_option) {
  Spent with[4];
  for (const int threads : {1, 2, 3}) {
    Runner runner(threads);
    runner.run();  // what is made once
    const double waited = waited_for_cores_us();
    Spent& s = with[threads];
    for (int i = 0; i < 3; ++i) {
      const Spent run = runner.run();
      s.wall += run.wall, s.cpu += run.cpu, s.caller += run.caller;
    }
    const double others = s.cpu - s.caller;
    std::printf("%d threads: CPU time / wall time %.2f; the others' CPU time / the caller's %.3f\n", threads,
                s.cpu / s.wall, others / s.caller);
    EXPECT_LE(others, (threads - 1) * 1.1 * s.caller + 0.01 * s.caller) << threads << " threads";
    // No thread lives longer than the run: a caller that seems to shows how far a guest's clocks are apart.
    EXPECT_LE(s.cpu, 1.01 * threads * std::max(s.wall, s.caller)) << threads << " threads";
    const double busy = waited < 0 ? 0 : (waited_for_cores_us() - waited) / 1e6 / s.wall;
    if (threads <= allowed_cores() && busy < 0.05) {
      EXPECT_GE(others, ((threads - 1) * 0.5 - 0.01) * s.caller)
          << threads << " threads: the others hardly worked";
    }
  }
}

}  // namespace
}  // namespace ridge
