#pragma once
// Symbolic dims of a description bound to the real shapes of a call.

#include "ops/operator.h"

namespace ridge {

/// "tokens hidden" -> its words; digits stay words.
std::vector<std::string> dim_words(const char* dims);

struct SplitBytes {
  int64_t codes = 0, scales = 0;
};
/// Bytes of `elements` elements of `t`, scales and minima of quantized types apart.
SplitBytes split_bytes(const Tensor& t, int64_t elements);

/// One operand against the dims bound so far: rank, literal sizes, symbols. Names operand, value found, value
/// wanted.
Status bind_operand(const char* op, const char* operand, const Tensor& t, const char* dims, Dims* bound);
/// A scalar argument that has to be an integer from `least` to `most`.
Status check_param(const char* op, std::string_view name, double value, double least, double most);
Status bad_dtype(const char* op, const char* operand, DType found, const std::vector<DType>& wanted);

/// Checks every operand of a call and fills `dims` with the symbols and counts.
template <class A>
Status bind(const Operator<A>& op, const A& args, Dims* dims) {
  for (const auto& o : op.operands) {
    const Tensor& t = args.*o.field;
    if (!t) {
      // A tensor without elements may have no memory.
      if (o.optional) continue;
      if (t.rank() == 0 || t.elements() != 0)
        return invalid_argument(op.name, ": operand ", o.name, " is missing");
    }
    std::vector<DType> allowed = o.dtypes;
    if (o.same_as != nullptr)
      for (const auto& other : op.operands)
        if (std::string_view(other.name) == o.same_as) allowed = {(args.*other.field).dtype};
    bool known = false;
    for (const DType d : allowed) known |= d == t.dtype;
    if (!known) return bad_dtype(op.name, o.name, t.dtype, allowed);
    RIDGE_TRY(bind_operand(op.name, o.name, t, o.dims, dims));
  }
  for (const auto& c : op.counts) dims->set(c.name, (args.*c.field).get());
  return {};
}

/// The values of all symbols, in the order of first mention: "2x576".
template <class A>
std::string default_shape_key(const Operator<A>& op, const A& args) {
  Dims dims;
  if (!bind(op, args, &dims).ok()) return "?";
  std::string key;
  std::vector<std::string> seen;
  for (const auto& o : op.operands)
    for (const auto& word : dim_words(o.dims)) {
      bool repeated = word[0] >= '0' && word[0] <= '9';
      for (const auto& s : seen) repeated |= s == word;
      if (repeated || !dims.has(word)) continue;
      seen.push_back(word);
      key += text(key.empty() ? "" : "x", dims[word]);
    }
  return key;
}

}  // namespace ridge
