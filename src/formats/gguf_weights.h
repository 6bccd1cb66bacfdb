#pragma once
// Looking through the weights of a file for what no model can compute with.

#include <string>
#include <vector>

#include "formats/gguf.h"

namespace ridge {

/// Weights of one tensor that are NaN or infinite.
struct BadWeights {
  std::string tensor;
  int64_t first;  // index of the first one, rows after each other
  double value;   // its value
  int64_t count;  // how many there are
};

/// Every tensor with such weights, in the order of the file; a block-quantized weight is what its block
/// decodes to. Reads all tensor data once, in pieces, by `threads` threads; tensors of types that no kernel
/// takes are left out. Errors: kIo; kInvalidArgument for `threads`.
Result<std::vector<BadWeights>> find_bad_weights(const GgufFile& file, int threads);

/// kCorrupt, naming file, tensor, index and value of the first of `bad` and how many more there are; ok when
/// there is none.
Status refuse_bad_weights(const GgufFile& file, const std::vector<BadWeights>& bad);

}  // namespace ridge
