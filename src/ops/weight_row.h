#pragma once
// Rows of weight matrices for references and bounds.

#include <vector>

#include "tensor/tensor.h"

namespace ridge {

/// Row `row` of w [out, in] in double; rows16 is decoded.
std::vector<double> weight_row(const Tensor& w, int64_t row);

/// sum_k a[k] b[k].
double dot(const double* a, const double* b, size_t count);

/// Row `token` of x [tokens, in] divided by its root mean square and times (w + weight_offset), as rms_norm
/// has it, in double.
std::vector<double> normalized_row(const Tensor& x, int64_t token, const Tensor& w, double epsilon,
                                   double weight_offset);

}  // namespace ridge
