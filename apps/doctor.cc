// ridge doctor: what this machine offers, what is kept about it, and what would be declined.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/memory.h"
#include "base/user_folder.h"
#include "verbs.h"

namespace ridge::app {

namespace {

using Json = nlohmann::ordered_json;

/// Whether the machine file is of use, and what to do where it is not. The path is told beside it.
Json machine_file(const MachineIdentity& id, const std::string& isa) {
  const std::string path = default_machine_path(isa);
  const auto machine = path.empty() ? Result<Machine>(not_found(kNoUserFolder)) : load_machine(path, id);
  std::string why = machine.ok() ? "measured " + machine->date : machine.status().message();
  if (!path.empty() && why.rfind(path + ": ", 0) == 0)
    why.erase(0, path.size() + 2);
  else if (!path.empty() && why.rfind(path, 0) == 0)
    why.replace(0, path.size(), "it");
  if (path.empty())
    why += ": name a file with 'ridge probe --output' and --machine";
  else if (!machine.ok() && why.find("ridge probe") == std::string::npos)
    why += ": 'ridge probe' measures this machine, and so does the first verb that needs it";
  return {{"path", path}, {"usable", machine.ok()}, {"why", why}};
}

Json examine() {
  Json j;
  const std::string isa = isa_name(native_isa());
  const MachineIdentity id = this_machine(isa);
  j["cpu"] = id.cpu, j["isa"] = isa, j["build"] = id.build, j["cores"] = allowed_cores();
  j["machine_file"] = machine_file(id, isa);
  std::vector<std::string> cuda = {"not in this build: it needs nvcc and the cuda preset"};
  for (const Backend& b : backends())
    if (std::string_view(b.name) == "cuda") cuda = b.survey();
  j["cuda"] = cuda;
  const bool gpu = std::any_of(cuda.begin(), cuda.end(), [](const std::string& line) {
    return line.rfind("GPU ", 0) == 0 && line.find("would be declined") == std::string::npos;
  });
  for (const Architecture& a : architectures()) j["architectures"].push_back(a.name);
  for (const AnyOperator* op : operators()) {
    Json kernels = Json::array();
    for (const KernelInfo& k : op->kernels())
      kernels.push_back({{"kernel", k.name},
                         {"backend", k.backend},
                         {"isa", isa_name(k.isa)},
                         {"runs_here", k.backend == "cpu" ? k.isa <= native_isa() : gpu}});
    j["operators"][op->name()] = kernels;
    if (const std::string why = why_no_kernel(*op, "cpu"); !why.empty()) j["no_cpu_kernel"][op->name()] = why;
  }
  return j;
}

void print(const Json& j) {
  std::printf("cpu          %s\ninstructions %s\ncores        %d\nbuild        %s\n",
              j["cpu"].get<std::string>().c_str(), j["isa"].get<std::string>().c_str(), j["cores"].get<int>(),
              j["build"].get<std::string>().c_str());
  const Json& m = j["machine_file"];
  const std::string path = m["path"].get<std::string>();
  std::printf("machine file %s%s%s\n", path.c_str(), path.empty() ? "" : ": ",
              m["why"].get<std::string>().c_str());
  const char* first = "cuda";
  for (const auto& line : j["cuda"]) {
    std::printf("%-12s %s\n", first, line.get<std::string>().c_str());
    first = "";
  }
  std::printf("architectures");
  for (const auto& a : j["architectures"]) std::printf(" %s", a.get<std::string>().c_str());
  std::printf("\n\noperators and their kernels (best first; - does not run here)\n");
  for (const auto& [name, kernels] : j["operators"].items()) {
    std::printf("  %-18s", name.c_str());
    for (const auto& k : kernels)
      std::printf(" %s%s:%s", k["runs_here"].get<bool>() ? "" : "-",
                  k[k["backend"] == "cpu" ? "isa" : "backend"].get<std::string>().c_str(),
                  k["kernel"].get<std::string>().c_str());
    if (j.contains("no_cpu_kernel") && j["no_cpu_kernel"].contains(name))
      std::printf("%s %s", kernels.empty() ? "" : ";", j["no_cpu_kernel"][name].get<std::string>().c_str());
    std::printf("\n");
  }
}

}  // namespace

std::string why_no_kernel(const AnyOperator& op, const std::string& backend) {
  const auto kernels = op.kernels();
  if (std::any_of(kernels.begin(), kernels.end(), [&](const KernelInfo& k) { return k.backend == backend; }))
    return "";
  std::string sequence;
  for (const char* part : op.replaces()) sequence += text(sequence.empty() ? " (" : ", ", part);
  if (!sequence.empty())
    return text("no kernel on ", backend, ": fused on GPUs alone, here its sequence runs", sequence, ")");
  // A build that has no kernel of an operator at all does not know its sequence.
  return text("no kernel on ", backend,
              kernels.empty() ? ": one for GPUs; here the operators run that it fuses, or its reference"
                              : ": its reference runs");
}

Command add_doctor(CLI::App& cli) {
  auto json = std::make_shared<bool>(false);
  CLI::App* sub = cli.add_subcommand("doctor", "Show what this machine offers and what would be declined");
  sub->add_flag("--json", *json, "One JSON object on stdout");
  sub->footer("Examples:\n  ridge doctor\n  ridge doctor --json");
  return {sub, [json]() -> Status {
            const Json j = examine();
            if (*json)
              std::printf("%s\n", j.dump(2).c_str());
            else
              print(j);
            return {};
          }};
}

}  // namespace ridge::app
