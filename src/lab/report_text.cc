#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"
#include "lab/report_parts.h"

namespace ridge::report {

std::string number(double v) {
  if (!std::isfinite(v)) return "-";
  char buffer[64];
  const double size = std::fabs(v);
  const int decimals = size == 0 ? 0 : size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  std::snprintf(buffer, sizeof buffer, "%.*f", decimals, v);
  return buffer;
}
std::string percent(double share) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.1f\xC2\xA0%%", std::fabs(share) < 0.0005 ? 0.0 : 100 * share);
  return buffer;
}
std::string time_text(double us) {
  const double size = std::fabs(us);
  return size >= 1e6 ? number(us / 1e6) + " s" : size >= 1e3 ? number(us / 1e3) + " ms" : number(us) + " µs";
}
std::string rate_text(double r, const char* unit) {
  const char* prefix = r >= 1e12 ? "T" : r >= 1e9 ? "G" : r >= 1e6 ? "M" : r >= 1e3 ? "k" : "";
  const double by = r >= 1e12 ? 1e12 : r >= 1e9 ? 1e9 : r >= 1e6 ? 1e6 : r >= 1e3 ? 1e3 : 1;
  return text(number(r / by), " ", prefix, unit);
}

std::vector<NamedRow> named_rows(const Profile& p) {
  std::vector<NamedRow> all;
  for (const ProfilePhase& phase : p.phases) {
    std::vector<ShownRow> rows = shown_rows(phase);
    std::stable_partition(rows.begin(), rows.end(), [](const ShownRow& r) { return r.row.op != "host"; });
    const char letter = phase.phase == Phase::kPrefill ? 'P' : phase.phase == Phase::kDecode ? 'D' : 'M';
    int n = 0;
    for (ShownRow& r : rows)
      all.push_back({text(letter, ++n), &phase, std::make_shared<const ProfileRow>(r.row),
                     phase.wall_us > 0 ? r.row.time_us / phase.wall_us : 0, std::move(r.sums)});
  }
  return all;
}

std::map<std::string, int> operator_colours(const Profile& p) {
  std::map<std::string, double> time;
  for (const ProfilePhase& phase : p.phases)
    for (const ProfileRow& r : phase.rows)
      // Each phase counts alike, however long it ran.
      if (r.op != "host") time[r.op] += phase.wall_us > 0 ? r.time_us / phase.wall_us : 0;
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [op, us] : time) order.emplace_back(us, op);
  std::sort(order.rbegin(), order.rend());
  std::map<std::string, int> colours;
  for (size_t i = 0; i < order.size(); ++i) colours[order[i].second] = i < 8 ? static_cast<int>(i) + 1 : 0;
  return colours;
}

}  // namespace ridge::report
