# Tests that measure time or ask for an idle machine: what runs beside them can break them, and ./check runs one of these that
# failed once more, alone. All others fail at once: a fault that comes every second time is a fault. CTest finds them by
# the label "timing", which is behind their other one: fast_timing, slow_timing, tools_timing.
set(RIDGE_TIMING_TESTS
  # Parts of a few hundred microseconds on two threads, each of which needs a core of its own.
  Ticks.* Metered.a_* Metered.rounds_*
  # The kernel's own pace, measured twice and compared; a whole probe has seconds to end in.
  ProbedKernel.* Probe.on_a_busy_machine*
  # How often, in 200 rounds or 10 s, the system takes a core away is the system's.
  OneCore.the_part_of_a_thread_that_is_away_is_taken Drift.a_reader_beside_busy_neighbours*
  # Two clocks of one processor, compared.
  CoreState.A33_the_clock_is_that_of_a_processor
  # Experiments that have 50 ms for their first blocks.
  AdviseRun.levers_* AdviseRun.without_* AdviseRun.a_batch_*
  # Limits in elapsed time, from 50 ms to 10 s.
  ChatTemplate.I29_endless* ChatTemplate.I29_values* GgufLoad.I10_* Sessions.I22_a_message*
  CApiErrors.a_machine_file_that_cannot_be_written*
  # Rates, and what a second thread or a filter gains or costs.
  LinearSpeed.* Loading.K41_the_time* Loading.I10_* Threads.* SampleDraws.K33_*)
# Ctrl-C after so many seconds, commands that end within so many, and rates of a whole process.
set(RIDGE_TIMING_TOOLS program_test program_bench_test program_refusals_test program_times_test)

# The tests of an executable, as CTest finds them when it runs.
function(ridge_discover_tests name label cost)
  string(JOIN ":" timing ${RIDGE_TIMING_TESTS})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "-${timing}"
                       PROPERTIES LABELS ${label} TIMEOUT 300 COST ${cost})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "${timing}"
                       PROPERTIES LABELS ${label}_timing TIMEOUT 300 COST ${cost})
endfunction()
