#pragma once
// How rows and long lines of an account are shown, alike in text and on the page.

#include <string>
#include <utility>
#include <vector>

#include "lab/profile.h"

namespace ridge {

/// "linear q4_k": the operator, and the format of the weights or cache that it reads, which sets apart rows
/// of one shape. Of a cache in two formats both; 8 bits, which activations have as well, only where nothing
/// else has a format.
std::string row_name(const ProfileRow& row);

/// Where the rest of a row's time went, as shares of it: what is unexplained first, of either sign, where it
/// is a hundredth or more; then the two largest other losses above a fiftieth.
std::vector<std::pair<Loss, double>> shown_losses(const ProfileRow& row);

/// `line` in lines of about 110 characters, broken behind one of `marks` and the space after it; those that
/// follow begin with `indent` spaces.
std::string wrapped(const std::string& line, const std::string& marks, size_t indent);

}  // namespace ridge
