#include "advise/effects.h"

#include <algorithm>
#include <cmath>

#include "advise/row_change.h"

namespace ridge {

namespace {

size_t pool(DataClass c) {
  return static_cast<size_t>(c);
}
size_t unit(Engine e) {
  return static_cast<size_t>(e);
}

void move_flops(Cost* cost, Engine to) {
  const int64_t useful = cost->total_flops(), executed = cost->total_executed();
  cost->flops.fill(0), cost->executed_flops.fill(0);
  cost->flops[unit(to)] = useful, cost->executed_flops[unit(to)] = executed;
}

void affect(const Profile& p, const ProfilePhase& phase, const ProfileRow& row, const RowChange& change,
            Effect* e) {
  // A25: a count or a level is wrong here, nothing may be promised from it.
  if (row.verdict.defect) return;
  e->rows.push_back({&phase, &row, changed_time(p, phase, row, change)});
}

/// Quantizing the input of `calls` linears of [tokens, in]: at best every second linear shares another's
/// codes and runs at its limit; at worst each has its own, at the worst attainment that operators without
/// weights show, and meets the team.
Interval quantizing_us(const Profile& p, const ProfilePhase& phase, int64_t calls, int64_t tokens,
                       int64_t in) {
  const ThreadCeilings& c = p.machine.at(p.threads);
  const int64_t elements = tokens * in;
  Cost one;
  one.flops[unit(Engine::kF32)] = 4 * elements;
  one.read_bytes[pool(DataClass::kActivations)] = 4 * elements;
  one.written_bytes[pool(DataClass::kActivations)] = elements;
  one.written_bytes[pool(DataClass::kScales)] = elements / 8;
  const double limit = judge(one, c, {1e18, elements * 5}).limit_us;
  double worst = 0.5;
  for (const ProfileRow& r : phase.rows)
    if (r.op != "host" && r.cost.read_bytes[pool(DataClass::kWeights)] == 0 && r.verdict.attainment > 0.02)
      worst = std::min(worst, r.verdict.attainment);
  const auto n = static_cast<double>(calls);
  return {limit * n / 2, 0, (limit / worst + c.barrier_us) * n};
}

}  // namespace

int64_t kv_width(const std::string& format) {
  return format == "f32" ? 4 : format == "f16" || format == "bf16" ? 2 : format == "q8" ? 1 : 0;
}
Chunks chunks_of(int64_t prompt, int64_t batch, int64_t chunk) {
  Chunks c;
  int64_t budget = 0;
  for (int64_t sequence = 0; sequence < batch; ++sequence)
    for (int64_t past = 0; past < prompt;) {
      if (budget == 0) budget = chunk, ++c.steps;
      const int64_t taken = std::min(budget, prompt - past);
      past += taken, budget -= taken, c.keys += past;
    }
  return c;
}

std::string bounds_text(const std::vector<Affected>& rows) {
  double by[4] = {}, sum = 0;
  for (const Affected& a : rows)
    by[static_cast<int>(a.row->verdict.bound)] += a.row->verdict.limit_us, sum += a.row->verdict.limit_us;
  std::vector<int> order = {1, 2, 3};
  std::sort(order.begin(), order.end(), [&](int a, int b) { return by[a] > by[b]; });
  std::string out;
  for (const int b : order)
    if (sum > 0 && by[b] > 0.005 * sum)
      out += text(out.empty() ? "" : ", ", bound_name(static_cast<Bound>(b)), " ",
                  static_cast<int64_t>(std::llround(100 * by[b] / sum)), " %");
  return out;
}

Effect activations_effect(const Profile& p, const Lever& lever) {
  Effect e;
  const bool to_int8 = lever.to == "int8";
  if (!to_int8 && lever.to != "f32") {
    e.refusal = text("activations know f32 and int8, not ", printable(lever.to));
    return e;
  }
  e.term = to_int8 ? "arithmetic and unpacking of linear's quantized weights"
                   : "linear on 8-bit activations, and quantizing them";
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (!to_int8 && r.op == "quantize_rows") {
        e.rows.push_back({&phase, &r, {}});
        continue;
      }
      if (r.op != "linear" || !is_quantized_format(r.formats)) continue;
      const auto dims = shape_dims(r.shape);
      if (has_format(r.formats, "i8") == to_int8 || dims.size() < 3) continue;
      RowChange c = unchanged(p, r);
      c.other_kernel = true;
      move_flops(&c.cost, to_int8 ? Engine::kInt8 : Engine::kF32);
      const int64_t codes = r.calls * dims[0] * dims[2], scales = codes / 8;
      c.cost.read_bytes[pool(DataClass::kActivations)] += (to_int8 ? -3 : 3) * codes;
      c.cost.read_bytes[pool(DataClass::kScales)] += to_int8 ? scales : -scales;
      c.formats = to_int8 ? "i8 " + r.formats : without_format(r.formats, "i8");
      affect(p, phase, r, c, &e);
      if (!to_int8) continue;
      const Interval more = quantizing_us(p, phase, r.calls, dims[0], dims[2]);
      e.added_us.low += more.low, e.added_us.high += more.high;
    }
  if (e.rows.empty())
    e.refusal = text("no linear with quantized weights runs on ", lever.from, " activations here");
  return e;
}

Effect kv_effect(const Profile& p, const Lever& lever) {
  Effect e;
  const int64_t from = kv_width(lever.from), to = kv_width(lever.to);
  if (from == 0 || to == 0) {
    e.refusal =
        text("the KV formats are f32, f16, bf16 and q8, not ", printable(from == 0 ? lever.from : lever.to));
    return e;
  }
  int64_t kv_bytes = 0, far_bytes = 0;
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      far_bytes += r.cost.read_bytes[pool(DataClass::kKv)] + r.cost.read_bytes[pool(DataClass::kWeights)];
      if (r.cost.read_bytes[pool(DataClass::kKv)] + r.cost.written_bytes[pool(DataClass::kKv)] == 0) continue;
      kv_bytes += r.cost.read_bytes[pool(DataClass::kKv)];
      const auto dims = shape_dims(r.shape);
      // kv_write's shape names it, attention's pace goes with it.
      const int64_t head_dim = dims.size() >= 3 ? dims[2] : !r.pace_dims.empty() ? r.pace_dims.front() : 64;
      RowChange c = unchanged(p, r);
      // The kernel that reads this format: unpacking it has a pace of its own.
      const auto stored = [](const std::string& kv) { return kv == "q8" ? std::string("i8") : kv; };
      c.formats = with_format(r.formats, stored(lever.from), stored(lever.to));
      for (auto* side : {&c.cost.read_bytes, &c.cost.written_bytes}) {
        const int64_t elements = (*side)[pool(DataClass::kKv)] / from;
        (*side)[pool(DataClass::kKv)] = elements * to;
        (*side)[pool(DataClass::kScales)] = lever.to == "q8" ? elements / head_dim * 4 : 0;
      }
      affect(p, phase, r, c, &e);
    }
  if (e.rows.empty()) e.refusal = "no operator of this workload touches KV";
  e.term = from == to ? text("unpacking of KV in ", lever.to, ": as many bytes as in ", lever.from)
                      : text("KV bytes, ", far_bytes > 0 ? 100 * kv_bytes / far_bytes : 0,
                             " % of the weights and KV read");
  return e;
}

Effect threads_effect(const Profile& p, const Lever& lever) {
  Effect e;
  const int threads = std::atoi(lever.to.c_str());
  const bool measured = std::any_of(p.machine.by_threads.begin(), p.machine.by_threads.end(),
                                    [&](const ThreadCeilings& t) { return t.threads == threads; });
  if (!measured) {
    e.refusal =
        text("the machine file has no ceilings of ", printable(lever.to), " threads: probe with them");
    return e;
  }
  e.term = threads < p.threads ? "meetings of the threads against their bandwidth and arithmetic"
                               : "bandwidth and arithmetic of more threads against their meetings";
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (r.op == "host" || r.verdict.limit_us <= 0) continue;
      RowChange c = unchanged(p, r);
      c.threads = threads;
      affect(p, phase, r, c, &e);
    }
  return e;
}

Effect chunk_effect(const Profile& p, const Lever& lever) {
  Effect e;
  const int64_t prompt = p.workload.prompt_tokens - p.workload.prefix_hit_tokens, batch = p.workload.batch,
                from = p.workload.prefill_chunk, to = std::atoll(lever.to.c_str());
  if (to < 1 || from < 1 || prompt < 1) {
    e.refusal = text("a prefill chunk of ", printable(lever.to), " tokens for a prompt of ", prompt);
    return e;
  }
  const Chunks before = chunks_of(prompt, batch, from), after = chunks_of(prompt, batch, to);
  if (before.steps == after.steps && before.keys == after.keys) {
    e.refusal = text(batch == 1 ? "the prompt" : text(batch, " prompts"), " of ", prompt, " tokens ",
                     batch == 1 ? "runs" : "run", " in ", before.steps, " step either way");
    return e;
  }
  e.term = text("weights read ", after.steps, " instead of ", before.steps, " times in prefill");
  const double steps = static_cast<double>(after.steps) / static_cast<double>(before.steps);
  const double keys = static_cast<double>(after.keys) / static_cast<double>(before.keys);
  const auto scale = [](int64_t* bytes, double by) {
    *bytes = std::llround(static_cast<double>(*bytes) * by);
  };
  for (const ProfilePhase& phase : p.phases) {
    if (phase.phase == Phase::kDecode) continue;
    for (const ProfileRow& r : phase.rows) {
      const auto dims = shape_dims(r.shape);
      // Rows of one token are the logits head's: once a prompt, whatever the chunk.
      if (r.op == "host" || dims.empty() || dims[0] <= 1) continue;
      RowChange c = unchanged(p, r);
      c.calls_ratio = steps;
      const int64_t tokens = std::max<int64_t>(1, std::llround(static_cast<double>(dims[0]) / steps));
      if (r.op == "linear" && !c.pace_dims.empty()) c.pace_dims.front() = tokens;
      if (r.op == "attention_prefill" && c.pace_dims.size() == 4) c.pace_dims.back() = tokens;
      const bool cached = r.cost.read_bytes[pool(DataClass::kKv)] > 0;
      if (cached && r.op != "kv_write") scale(&c.cost.read_bytes[pool(DataClass::kKv)], keys);
      if (!cached && r.op != "embedding") {
        scale(&c.cost.read_bytes[pool(DataClass::kWeights)], steps);
        if (!has_format(r.formats, "i8")) scale(&c.cost.read_bytes[pool(DataClass::kScales)], steps);
      }
      affect(p, phase, r, c, &e);
    }
  }
  if (e.rows.empty()) e.refusal = "the account has no prefill";
  return e;
}

Effect fusion_effect(const Profile& p, const Lever& lever, const FusedOperator& fused) {
  Effect e;
  const bool on = lever.to == "on";
  e.term = text("the write and read between ", fused.replaces.front(), " and what follows it");
  const ThreadCeilings& ceilings = p.machine.at(p.threads);
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows) {
      if (r.op != (on ? fused.replaces.back() : fused.name) || r.verdict.defect) continue;
      const auto dims = shape_dims(r.shape);
      // The value handed over: what the first operator writes, as large as what it reads first.
      const ProfileRow* first = nullptr;
      for (const ProfileRow& f : phase.rows)
        if (f.op == fused.replaces.front() && shape_dims(f.shape) == dims) first = &f;
      if (on && first == nullptr) continue;
      const int64_t calls = on ? std::min(first->calls, r.calls) : r.calls;
      const int64_t bytes = dims.size() >= 2 ? 4 * dims[0] * dims[1] : 0;
      const auto n = static_cast<double>(calls);
      const double read = static_cast<double>(bytes) / read_bandwidth(ceilings, 3 * bytes) * 1e6 * n;
      const double share = n / static_cast<double>(r.calls);
      // At least the read; at most the shorter operator's whole time, or as much again.
      const double most =
          on ? std::min(r.time_us * share, first->time_us * n / static_cast<double>(first->calls))
             : r.time_us;
      const double less = std::min(read, most);
      Affected a{&phase, &r, {}};
      a.then_us = on ? Interval{r.time_us - most, 0, r.time_us - less}
                     : Interval{r.time_us + less, 0, r.time_us + most};
      a.then_us.value = (a.then_us.low + a.then_us.high) / 2;
      e.rows.push_back(a);
    }
  if (e.rows.empty())
    e.refusal = text(on ? "nothing for " : "no call of ", fused.name,
                     on ? " to replace in this workload" : " in this workload");
  return e;
}

}  // namespace ridge
