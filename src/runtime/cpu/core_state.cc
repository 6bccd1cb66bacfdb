#include "runtime/cpu/core_state.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "account/recorder.h"
#include "runtime/backends.h"

namespace ridge {

namespace {

/// Makes the compiler believe that the value changes here, and so compute it.
void hold(uint64_t& value) {
  asm volatile("" : "+r"(value));
}

/// Additions of two registers: those of constants some cores do without an adder, several in a cycle.
template <size_t... I>
void add_in_turn(uint64_t& sum, uint64_t addend, std::index_sequence<I...>) {
  ((sum += addend, hold(sum), static_cast<void>(I)), ...);
}

/// The number in a file of one; -1 without it.
double number_in(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return -1;
  double number = -1;
  if (std::fscanf(file, "%lf", &number) != 1) number = -1;
  std::fclose(file);
  return number;
}

bool starts_with(const std::string& whole, const std::string& start) {
  return whole.compare(0, start.size(), start) == 0;
}

/// "intel-rapl:0" that calls itself "package-0", also on AMD; not its parts ("intel-rapl:0:1"), nor the same
/// package again ("intel-rapl-mmio:0"), nor the whole platform that holds it ("intel-rapl:1", "psys").
bool is_package(const std::filesystem::path& zone) {
  const std::string folder = zone.filename(), prefix = "intel-rapl:";
  if (!starts_with(folder, prefix) || folder.size() == prefix.size() ||
      !std::all_of(folder.begin() + static_cast<std::ptrdiff_t>(prefix.size()), folder.end(),
                   [](unsigned char c) { return std::isdigit(c) != 0; }))
    return false;
  std::string name;
  std::ifstream(zone / "name") >> name;
  return starts_with(name, "package");
}

}  // namespace

double core_clock_mhz() {
  constexpr int kChains = 3, kRounds = 4096;
  constexpr size_t kAdds = 64;  // a round
  uint64_t sum = 0, addend = 1;
  hold(addend);
  double most = 0;
  for (int chain = 0; chain < kChains; ++chain) {
    const int64_t begin = now_ns();
    for (int round = 0; round < kRounds; ++round) add_in_turn(sum, addend, std::make_index_sequence<kAdds>());
    const auto ns = static_cast<double>(std::max<int64_t>(now_ns() - begin, 1));
    most = std::max(most, static_cast<double>(kRounds * kAdds) / ns * 1e3);
  }
  return most;
}

PackagePower::PackagePower(const std::string& folder) {
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error))
    if (is_package(at->path())) {
      const std::string zone = at->path();
      packages_.push_back({zone + "/energy_uj", number_in(zone + "/max_energy_range_uj")});
    }
}

std::optional<double> PackagePower::watts(int64_t ns) {
  const int64_t passed = ns - std::exchange(ns_, ns);
  bool known = !packages_.empty() && passed > 0;
  double uj = 0;
  for (Package& p : packages_) {
    const double now = number_in(p.path), before = std::exchange(p.energy_uj, now);
    known = known && now >= 0 && before >= 0 && (now >= before || p.range_uj > 0);
    uj += now >= before ? now - before : now + p.range_uj - before;
  }
  if (!known) return std::nullopt;
  return uj / static_cast<double>(passed) * 1e3;
}

StateReader cpu_state_reader(const Device&) {
  auto power = std::make_shared<PackagePower>();
  return [power]() -> DeviceState { return {core_clock_mhz(), power->watts(now_ns())}; };
}

}  // namespace ridge
