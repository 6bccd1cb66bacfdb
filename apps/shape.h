#pragma once
// An operator's shape as users write it: without the numbers that follow from others.

#include <string>
#include <vector>

#include "base/status.h"

namespace ridge::app {

/// All values of `case_dims` (names apart by spaces, as the operator's description has them): given in full,
/// or without those that follow: blocks and padded from the columns before them, sequences_plus_1, pairs,
/// pages from sequences and max_pages, and 0 for history_length and biases.
/// Errors: kInvalidArgument naming the operator, how many numbers were given, and the names of those it
/// takes.
Result<std::vector<int64_t>> complete_shape(const std::string& op, const std::string& case_dims,
                                            const std::vector<int64_t>& given);

/// The same call as users write it, "4,100,576": without the numbers that follow where those are what
/// follows, else in full. complete_shape() of it gives `shape`.
std::string shape_text(const std::string& op, const std::string& case_dims,
                       const std::vector<int64_t>& shape);

}  // namespace ridge::app
