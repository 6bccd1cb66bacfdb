#include "machine/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/build.h"
#include "base/files.h"
#include "base/user_folder.h"
#include "machine/plausible.h"

namespace ridge {

namespace {

using Json = nlohmann::ordered_json;

// Raised whenever what a machine file holds, or what its figures mean, changes.
constexpr int kFormat = 4;

template <class Point>
double interpolate(const std::vector<Point>& points, int64_t bytes, double Point::*value) {
  if (points.empty()) return 0;
  if (bytes <= points.front().bytes) return points.front().*value * 1e9;
  for (size_t i = 1; i < points.size(); ++i) {
    if (bytes > points[i].bytes) continue;
    const double low = std::log(static_cast<double>(points[i - 1].bytes)),
                 high = std::log(static_cast<double>(points[i].bytes));
    const double share = (std::log(static_cast<double>(bytes)) - low) / (high - low);
    return (points[i - 1].*value + share * (points[i].*value - points[i - 1].*value)) * 1e9;
  }
  return points.back().*value * 1e9;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, vendor, family, model, name;
  while (std::getline(info, line)) {
    const auto value = [&](const char* key, std::string* out) {
      if (line.rfind(key, 0) == 0 && out->empty())
        *out = line.substr(std::min(line.size(), line.find(':') + 2));
    };
    value("vendor_id", &vendor), value("cpu family", &family), value("model\t", &model),
        value("model name", &name);
  }
  return text(name, " (", vendor, " family ", family, " model ", model, ")");
}

Json to_json(const Machine& m) {
  Json j;
  j["format"] = kFormat;
  j["cpu"] = m.cpu, j["isa"] = m.isa, j["build"] = m.build, j["compiler"] = m.compiler,
  j["commit"] = m.commit;
  j["date"] = m.date, j["governor"] = m.governor, j["cores"] = m.cores, j["load"] = m.load,
  j["pressure"] = m.pressure, j["probe_seconds"] = m.seconds;
  for (const ThreadCeilings& t : m.by_threads) {
    Json c;
    c["threads"] = t.threads, c["barrier_us"] = t.barrier_us;
    c["flops"] = Json::object();
    for (int e = 0; e < kEngines; ++e)
      if (t.flops[static_cast<size_t>(e)] != 0)
        c["flops"][engine_name(static_cast<Engine>(e))] = t.flops[static_cast<size_t>(e)];
    for (const BandwidthPoint& p : t.curve)
      c["bandwidth_gbs"].push_back(
          {{"bytes", p.bytes}, {"read", p.read}, {"write", p.write}, {"copy", p.copy}});
    for (const PiecePoint& p : t.pieces)
      c["piece_read_gbs"].push_back({{"bytes", p.bytes}, {"read", p.read}});
    j["by_threads"].push_back(c);
  }
  j["kernels"] = Json::array();
  for (const KernelPace& k : m.kernels) {
    Json kernel = {{"op", k.op},     {"kernel", k.kernel},     {"formats", k.formats},
                   {"dims", k.dims}, {"start_us", k.start_us}, {"exposed", k.exposed}};
    for (const PacePoint& p : k.points) kernel["points"].push_back({{"work", p.work}, {"us", p.us}});
    j["kernels"].push_back(std::move(kernel));
  }
  for (const OtherMeasure& o : m.others)
    j["others"].push_back({{"what", o.what}, {"value", o.value}, {"unit", o.unit}});
  return j;
}

Machine from_json(const Json& j) {
  Machine m;
  m.cpu = j.at("cpu"), m.isa = j.at("isa"), m.build = j.at("build"), m.compiler = j.at("compiler"),
  m.commit = j.at("commit");
  m.date = j.at("date"), m.governor = j.at("governor"), m.cores = j.at("cores"), m.load = j.at("load"),
  m.pressure = j.at("pressure"), m.seconds = j.at("probe_seconds");
  for (const Json& c : j.at("by_threads")) {
    ThreadCeilings t;
    t.threads = c.at("threads"), t.barrier_us = c.at("barrier_us");
    for (int e = 0; e < kEngines; ++e)
      t.flops[static_cast<size_t>(e)] = c.at("flops").value(engine_name(static_cast<Engine>(e)), 0.0);
    for (const Json& p : c.at("bandwidth_gbs"))
      t.curve.push_back({p.at("bytes"), p.at("read"), p.at("write"), p.at("copy")});
    // A device whose calls do not meet in pieces has none.
    if (c.contains("piece_read_gbs"))
      for (const Json& p : c.at("piece_read_gbs")) t.pieces.push_back({p.at("bytes"), p.at("read")});
    m.by_threads.push_back(t);
  }
  for (const Json& k : j.at("kernels")) {
    KernelPace pace{k.at("op"), k.at("kernel"),   k.at("formats"), k.at("dims"),
                    {},         k.at("start_us"), k.at("exposed")};
    for (const Json& p : k.at("points")) pace.points.push_back({p.at("work"), p.at("us")});
    m.kernels.push_back(std::move(pace));
  }
  if (j.contains("others"))
    for (const Json& o : j.at("others")) m.others.push_back({o.at("what"), o.at("value"), o.at("unit")});
  return m;
}

}  // namespace

double Machine::launch_us() const {
  for (const OtherMeasure& o : others)
    if (o.what == kLaunchMeasure) return o.value;
  return 0;
}
const ThreadCeilings& Machine::at(int threads) const {
  const ThreadCeilings* best = &by_threads.front();
  for (const ThreadCeilings& t : by_threads)
    if (t.threads <= threads) best = &t;
  return *best;
}

double read_bandwidth(const ThreadCeilings& c, int64_t bytes) {
  return interpolate(c.curve, bytes, &BandwidthPoint::read);
}
double write_bandwidth(const ThreadCeilings& c, int64_t bytes) {
  return interpolate(c.curve, bytes, &BandwidthPoint::write);
}
double piece_bandwidth(const ThreadCeilings& c, int64_t bytes) {
  const double far = read_bandwidth(c, c.curve.empty() ? 0 : c.curve.back().bytes);
  return c.pieces.empty() ? far : std::min(far, interpolate(c.pieces, bytes, &PiecePoint::read));
}

MachineIdentity this_machine(const std::string& isa) {
  return {cpu_name(), isa, built_kernels()};
}
MachineIdentity this_machine(const std::string& backend, const std::string& device) {
  MachineIdentity id = this_machine(backend);
  id.cpu = device;
  return id;
}

Result<Machine> load_machine(const std::string& path, const MachineIdentity& expected) {
  RIDGE_ASSIGN(const std::string content, read_file(path, 16 << 20));
  Machine m;
  try {
    const Json json = Json::parse(content);
    const int format = json.value("format", 1);
    if (format != kFormat)
      return declined(path, " is a machine file of format ", format, ", this is format ", kFormat,
                      ": run 'ridge probe' again");
    m = from_json(json);
  } catch (const nlohmann::json::exception& e) {
    // Behind "[json.exception.type_error.302] ", which is for who wrote the parser.
    const std::string_view what = e.what();
    const size_t reason = what.find("] ");
    return corrupt(path,
                   ": not a machine file: ", what.substr(reason == std::string_view::npos ? 0 : reason + 2),
                   ": run 'ridge probe' again");
  }
  RIDGE_TRY(check_machine(m).within(path));
  const auto stale = [&](const char* what, const std::string& found, const std::string& wanted) {
    return declined(path, " was measured on another ", what, ": ", found, ", this is ", wanted,
                    ": run 'ridge probe' again");
  };
  if (m.cpu != expected.cpu) return stale("processor", m.cpu, expected.cpu);
  if (m.isa != expected.isa) return stale("instruction set", m.isa, expected.isa);
  if (m.build != expected.build) return stale("build", m.build, expected.build);
  return m;
}

Status save_machine(const std::string& path, const Machine& machine) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  return write_file_atomically(path, to_json(machine).dump(1) + "\n");
}

std::string default_machine_path(const std::string& isa) {
  if (const char* path = std::getenv("RIDGE_MACHINE")) return path;
  const std::string folder = user_folder();
  return folder.empty() ? "" : text(folder, "/machine-", isa, ".json");
}

}  // namespace ridge
