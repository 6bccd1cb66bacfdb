// Which rows of an account are shown one by one, and which as a sum; and how a row is named.

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "lab/shown.h"

namespace ridge {

namespace {

/// "1 q, 9/3 x 64, 1 after 12..75": what both begin with, up to a space, and where they differ.
std::string range_text(const std::string& first, const std::string& last) {
  size_t same = 0, space = 0;
  while (same < std::min(first.size(), last.size()) && first[same] == last[same])
    if (first[same++] == ' ') space = same;
  return text(first, "..", last.substr(space));
}

ProfileRow sum_of(const std::vector<const ProfileRow*>& rows) {
  ProfileRow out = *rows.front();
  out.shape = range_text(rows.front()->shape, rows.back()->shape);
  std::array<double, 4> by_bound{};
  for (const ProfileRow* r : rows) by_bound[static_cast<size_t>(r->verdict.bound)] += r->verdict.limit_us;
  for (size_t i = 1; i < rows.size(); ++i) {
    const ProfileRow& r = *rows[i];
    out.calls += r.calls, out.time_us += r.time_us, out.cost += r.cost;
    out.occasion.kernel_us += r.occasion.kernel_us;
    Verdict& v = out.verdict;
    v.limit_us += r.verdict.limit_us, v.compute_us += r.verdict.compute_us;
    v.far_us += r.verdict.far_us, v.near_us += r.verdict.near_us;
    v.defect |= r.verdict.defect;
    for (size_t l = 0; l < v.loss_us.size(); ++l) v.loss_us[l] += r.verdict.loss_us[l];
  }
  out.verdict.bound =
      static_cast<Bound>(std::max_element(by_bound.begin(), by_bound.end()) - by_bound.begin());
  out.verdict.attainment = out.time_us > 0 ? out.verdict.limit_us / out.time_us : 0;
  return out;
}

}  // namespace

std::vector<ShownRow> shown_rows(const ProfilePhase& phase, bool each) {
  constexpr size_t kApart = 4;
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  const auto key = [](const ProfileRow& r) { return Key(r.op, r.kernel, r.formats, r.fixed_shape); };
  std::map<Key, std::vector<const ProfileRow*>> alike;
  for (const ProfileRow& r : phase.rows)
    if (r.varies && !each) alike[key(r)].push_back(&r);
  std::vector<ShownRow> out;
  for (const ProfileRow& r : phase.rows) {
    const auto found = alike.find(key(r));
    if (!r.varies || found == alike.end() || found->second.size() <= kApart)
      out.push_back({r, {}});
    else if (found->second.front() == &r)
      out.push_back({sum_of(found->second), found->second});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const ShownRow& a, const ShownRow& b) { return a.row.time_us > b.row.time_us; });
  return out;
}

std::string row_name(const ProfileRow& row) {
  std::vector<std::string> formats;
  for (size_t at = 0; at < row.formats.size();) {
    const size_t end = std::min(row.formats.find(' ', at), row.formats.size());
    const std::string format = row.formats.substr(at, end - at);
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.push_back(format);
    at = end + 1;
  }
  if (formats.size() > 1)
    formats.erase(std::remove(formats.begin(), formats.end(), dtype_name(kI8)), formats.end());
  std::string out = row.op;
  for (const std::string& format : formats) out += " " + format;
  return out;
}

std::vector<std::pair<Loss, double>> shown_losses(const ProfileRow& row) {
  constexpr double kLeastUnexplained = 0.01, kLeast = 0.02;
  constexpr size_t kOthers = 2;
  std::vector<std::pair<Loss, double>> others, out;
  if (row.time_us <= 0) return out;
  for (int l = 0; l < kLosses; ++l) {
    const auto loss = static_cast<Loss>(l);
    const double share = row.verdict.loss(loss) / row.time_us;
    if (loss != Loss::kUnexplained && share > kLeast) others.emplace_back(loss, share);
    if (loss == Loss::kUnexplained && std::fabs(share) >= kLeastUnexplained) out.emplace_back(loss, share);
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  others.resize(std::min(others.size(), kOthers));
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

std::string wrapped(const std::string& line, const std::string& marks, size_t indent) {
  constexpr size_t kWidth = 110;
  std::string out;
  size_t begin = 0, column = 0;  // of the piece, and where it would stand
  while (begin < line.size()) {
    size_t end = begin;
    do end = std::min(line.find_first_of(marks, end + 1), line.size() - 1) + 1;
    while (end < line.size() && line[end] != ' ');
    size_t skip = 0;
    if (begin > 0 && column + (end - begin) > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent, skip = 1;  // the space
    }
    out.append(line, begin + skip, end - begin - skip);
    column += end - begin - skip, begin = end;
  }
  return out;
}

}  // namespace ridge
