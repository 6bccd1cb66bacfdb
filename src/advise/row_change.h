#pragma once
// One row of the account under a changed lever.

#include <cstdint>
#include <string>
#include <vector>

#include "lab/advice_record.h"

namespace ridge {

/// "512x1536x576" -> {512, 1536, 576}; what is no number ends the list.
std::vector<int64_t> shape_dims(const std::string& shape);

bool is_quantized_format(const std::string& formats);  // names a block-quantized weight type
bool has_format(const std::string& formats, const std::string& one);
std::string with_format(const std::string& formats, const std::string& from, const std::string& to);
std::string without_format(const std::string& formats, const std::string& one);

struct RowChange {
  Cost cost;
  std::string formats;
  std::vector<int64_t> pace_dims;  // of one call, for the kernel's pace
  int threads = 0;
  double calls_ratio = 1;
  bool other_kernel = false;  // another kernel will run: the present one's conversion says nothing
};

/// The change that changes nothing.
RowChange unchanged(const Profile& profile, const ProfileRow& row);

/// Microseconds of the row's calls then.
Interval changed_time(const Profile& profile, const ProfilePhase& phase, const ProfileRow& row,
                      const RowChange& change);

}  // namespace ridge
