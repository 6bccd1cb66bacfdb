#pragma once
// Parts of the report page: each returns HTML.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/advice_record.h"

namespace ridge::report {

/// For text between tags and in quoted attributes. Control characters and bytes that are not UTF-8 become
/// U+FFFD.
std::string escaped(std::string_view untrusted);
/// Three or four significant digits without exponent: 0.0123, 1.23, 123, 45600.
std::string number(double v);
std::string percent(double share);                           // "12.3 %"
std::string time_text(double us);                            // "1.23 ms"
std::string rate_text(double per_second, const char* unit);  // "1.23 GFLOP/s"

/// A row with its name in plot and tables: D3 is the third of decode by time.
struct NamedRow {
  std::string id;
  const ProfilePhase* phase;
  std::shared_ptr<const ProfileRow> row;
  double share = 0;                     // of the phase's time
  std::vector<const ProfileRow*> sums;  // see ShownRow
};
/// shown_rows() of all phases; the host's row last of its phase.
std::vector<NamedRow> named_rows(const Profile& profile);

/// 1-based colour of each operator by its time over all phases; those beyond the palette get 0.
std::map<std::string, int> operator_colours(const Profile& profile);

std::string style();
/// `name` sets the ids of one drawing apart from those of another on the page.
std::string roofline_svg(const Profile& profile, const std::vector<NamedRow>& rows, int width, int height,
                         const std::string& name);
std::string phase_bars(const Profile& profile, const ProfilePhase& phase);
std::string operator_tables(const ProfilePhase& phase, const std::vector<NamedRow>& rows);
std::string advice_section(const AdviceRecord& record);
std::string facts_section(const Profile& profile);

}  // namespace ridge::report
