// Which rows of an account are shown one by one, and which as a sum.

#include <algorithm>
#include <map>
#include <tuple>

#include "lab/profile.h"

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

}  // namespace ridge
