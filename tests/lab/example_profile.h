#pragma once
// A small account made by hand: a machine of round figures, one request, a prefill and two decode steps.

#include <cstdio>

#include "lab/profile.h"

namespace ridge {

inline Machine example_machine() {
  Machine m;
  m.cpu = "Example CPU", m.isa = "avx512", m.build = "b0", m.compiler = "cc", m.date = "2026-01-02",
  m.cores = 2;
  for (const int threads : {1, 2}) {
    ThreadCeilings c;
    const double n = threads;
    c.threads = threads, c.barrier_us = threads == 1 ? 0 : 1;
    // GB/s: L1 100, L2 50, memory 10 a thread (memory saturates at 15).
    c.curve = {{32 << 10, 100 * n, 50 * n, 50 * n},
               {1 << 20, 50 * n, 25 * n, 25 * n},
               {512 << 20, threads == 1 ? 10.0 : 15.0, 8, 8}};
    c.flops = {100e9 * n, 200e9 * n, 0, 400e9 * n, 0};
    m.by_threads.push_back(c);
  }
  for (const int64_t rows : {1, 128}) {
    const double flops = 2e6 * static_cast<double>(rows);
    m.kernels.push_back({"linear", "linear_f32", "q4_1", {rows, 1000}, {{flops, flops / 40e3}}});
    m.kernels.push_back({"linear", "linear_i8", "i8 q4_1", {rows, 1000}, {{flops, flops / 200e3}}});
  }
  return m;
}

inline size_t at(DataClass c) {
  return static_cast<size_t>(c);
}

/// Judged as Profiler::finish judges. `time_us` is of all calls; `kernel_flops` the kernel's pace, 0:
/// unknown.
inline ProfileRow example_row(const Machine& m, int threads, std::string op, std::string shape,
                              std::string formats, int64_t calls, const Cost& cost, double time_us,
                              int64_t reuse_bytes, double kernel_flops = 0) {
  ProfileRow r;
  r.op = std::move(op), r.shape = std::move(shape), r.formats = std::move(formats),
  r.kernel = r.op + "_kernel";
  r.calls = calls, r.cost = cost, r.time_us = time_us;
  r.occasion.measured_us = time_us, r.occasion.calls = calls, r.occasion.reuse_bytes = reuse_bytes;
  if (kernel_flops > 0) r.occasion.kernel_us = static_cast<double>(cost.total_flops()) / kernel_flops * 1e6;
  long tokens = 0, out = 0, in = 0;
  if (r.op == "linear" && std::sscanf(r.shape.c_str(), "%ldx%ldx%ld", &tokens, &out, &in) == 3)
    r.pace_dims = {tokens, in};
  if (threads > 1) r.occasion.barrier_us = static_cast<double>(calls);
  r.verdict = judge(cost, m.at(threads), r.occasion);
  return r;
}

inline Cost linear_cost(int64_t tokens, int64_t out, int64_t in, int64_t calls, bool int8) {
  Cost c;
  const size_t e = static_cast<size_t>(int8 ? Engine::kInt8 : Engine::kF32);
  c.flops[e] = c.executed_flops[e] = 2 * tokens * out * in * calls;
  c.read_bytes[at(DataClass::kWeights)] = out * in / 2 * calls;
  c.read_bytes[at(DataClass::kScales)] = out * in / 8 * calls + (int8 ? tokens * in / 8 * calls : 0);
  c.read_bytes[at(DataClass::kActivations)] = tokens * in * (int8 ? 1 : 4) * calls;
  c.written_bytes[at(DataClass::kActivations)] = tokens * out * 4 * calls;
  return c;
}
inline Cost attention_cost(int64_t kv_bytes, int64_t flops) {
  Cost c;
  c.flops[0] = c.executed_flops[0] = flops;
  c.read_bytes[at(DataClass::kKv)] = kv_bytes;
  c.read_bytes[at(DataClass::kActivations)] = c.written_bytes[at(DataClass::kActivations)] = 4096;
  return c;
}

inline void close_phase(ProfilePhase* phase, double host_us) {
  ProfileRow host;
  host.op = "host", host.shape = "schedule, indices, tokens", host.calls = phase->steps,
  host.time_us = host_us;
  host.verdict.loss(Loss::kHostGap) = host_us;
  phase->rows.push_back(host);
  phase->wall_us = 0;
  for (const ProfileRow& r : phase->rows) phase->wall_us += r.time_us;
}

/// Prefill of 128 tokens, compute-bound; decode of 2 tokens, memory-bound, with a cache of 4096 tokens.
inline Profile example_profile(bool int8 = false, int threads = 2) {
  Profile p;
  p.machine = example_machine(), p.threads = threads;
  p.workload.model = "tiny<script>alert('x')</script>&.gguf";
  p.workload.weight_format = "q4_1", p.workload.kv_format = "f16";
  p.workload.activation_format = int8 ? "int8" : "f32";
  p.workload.device = "cpu", p.workload.prompt_tokens = 128, p.workload.output_tokens = 3;
  p.workload.prefill_chunk = 128;
  p.date = "2026-01-03", p.commit = "0123456789ab", p.command = "ridge profile 'a \"quoted\" name'";
  const std::string formats = int8 ? "i8 q4_1" : "q4_1";
  const double rate = (int8 ? 200e9 : 40e9) * threads;
  const int64_t far = 4 * 4096 * 4096 / 2 + (64 << 20);

  ProfilePhase prefill;
  prefill.phase = Phase::kPrefill, prefill.steps = 1, prefill.tokens = 128;
  const Cost many = linear_cost(128, 4096, 4096, 4, int8);
  prefill.rows.push_back(example_row(p.machine, threads, "linear", "128x4096x4096", formats, 4, many,
                                     static_cast<double>(many.total_flops()) / rate * 1e6 + 10, far, rate));
  prefill.rows.push_back(example_row(p.machine, threads, "attention_prefill", "128x32x128x4096", "f16 f16", 4,
                                     attention_cost(1 << 20, 400'000'000), 5000, far));
  close_phase(&prefill, 40);
  p.phases.push_back(prefill);

  ProfilePhase decode;
  decode.phase = Phase::kDecode, decode.steps = 2, decode.tokens = 2;
  const Cost one = linear_cost(1, 4096, 4096, 8, int8);
  decode.rows.push_back(example_row(p.machine, threads, "linear", "1x4096x4096", formats, 8, one,
                                    1.25 * judge(one, p.machine.at(threads), {1e18, far}).far_us, far, rate));
  const Cost cached = attention_cost(128 << 20, 4'000'000);
  decode.rows.push_back(example_row(p.machine, threads, "attention_decode", "1x32x128x4096", "f16 f16", 8,
                                    cached, 1.25 * judge(cached, p.machine.at(threads), {1e18, far}).far_us,
                                    far));
  Cost moved;
  moved.read_bytes[at(DataClass::kActivations)] = moved.written_bytes[at(DataClass::kActivations)] = 16384;
  decode.rows.push_back(example_row(p.machine, threads, "gather_rows", "1x4096", "", 2, moved, 4, far));
  close_phase(&decode, 60);
  p.phases.push_back(decode);

  p.stages = {{7, Stage::kTokenize, 1'000'000, 1'050'000},     {7, Stage::kQueue, 1'050'000, 1'100'500},
              {7, Stage::kPrefill, 1'100'500, 9'000'123},      {7, Stage::kSampling, 9'000'123, 9'100'000},
              {7, Stage::kDecodeRound, 9'100'000, 12'000'000}, {7, Stage::kSampling, 12'000'000, 12'100'777}};
  const auto call = [&](int64_t begin, int64_t end, const char* op, const Cost& cost) {
    return CallSlice{begin, end, std::make_shared<CallName>(CallName{op, "layer 0", "kernel", "1x2", ""}),
                     std::make_shared<Cost>(cost)};
  };
  p.steps = {{Phase::kPrefill,
              1'100'500,
              9'100'000,
              128,
              {call(1'200'000, 8'000'001, "linear", many), call(8'000'001, 9'050'000, "sample", moved)}},
             {Phase::kDecode, 9'150'000, 12'100'777, 1, {call(9'150'500, 12'000'000, "linear", one)}}};
  p.ttft_us = 8100, p.tpot_us = 3000.777;
  return p;
}

}  // namespace ridge
