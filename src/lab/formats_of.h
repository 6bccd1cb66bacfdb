#pragma once

#include <string>
#include <vector>

#include "ops/any_operator.h"

namespace ridge {

/// The stored formats that a call reads: dtypes of its weights and KV, and of activations in 8 bits: "q4_1
/// i8". Rows of the account with different formats are different rows.
std::string formats_of(const AnyCall& call);

/// Values of linear's case_dims for y [tokens, out] = x [tokens, in] w^T, whatever their order and number.
std::vector<int64_t> linear_case(const AnyOperator& linear, int64_t tokens, int64_t out, int64_t in);

}  // namespace ridge
