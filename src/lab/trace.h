#pragma once

#include <string>

#include "lab/profile.h"

namespace ridge {

/// The profile's requests, steps and calls as a Chrome trace (JSON object form), for Perfetto or
/// chrome://tracing. Times are microseconds from the first instant that the profile knows. Process 1 holds a
/// track a request: the request from arrival to last token, and under it its stages (names of stage_name()),
/// which add up to it. Process 2 holds the engine: steps, and under each its calls, each with shape, kernel,
/// formats, flops, bytes (class -> read, written), and limit_us, bound and attainment by the same ceilings,
/// those of the run, as the profile's row of it; what the host does before and after
/// them is a slice "host", so that the slices of a step add up to it. otherData carries workload, machine and
/// provenance. Source: "Trace Event Format", the Chromium authors, 2016 (complete events, metadata events).
std::string trace_json(const Profile& profile);

}  // namespace ridge
