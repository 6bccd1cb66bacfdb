#pragma once

#include <string>

#include "lab/advice_record.h"

namespace ridge {

/// The profile, and the advice where there is some, as one HTML page that needs nothing else: no script, no
/// request (its own policy forbids them), light and dark. Roofline of all rows under the measured ceilings,
/// each phase's time by operator and by loss, tables of the same numbers, machine, workload, provenance.
/// Every text from outside is escaped.
std::string report_html(const Profile& profile, const AdviceRecord* advice);

}  // namespace ridge
