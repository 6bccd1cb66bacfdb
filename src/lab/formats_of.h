#pragma once

#include <string>

#include "ops/any_operator.h"

namespace ridge {

/// The stored formats that a call reads: dtypes of its weights and KV, and of activations in 8 bits: "q4_1
/// i8". Rows of the account with different formats are different rows.
std::string formats_of(const AnyCall& call);

}  // namespace ridge
