#pragma once
// Weights of attention as terms of a 16-bit type.

#include "device/convert.cuh"

namespace ridge::cuda {

/// What weights, up to 1, are multiplied by before they become two terms of T: those of f16 resolve no less
/// than 2^-24. A sum over them is as many times too large.
template <class T>
inline constexpr float kWeightScale = kDTypeOf<T> == kF16 ? 32768 : 1;

}  // namespace ridge::cuda
