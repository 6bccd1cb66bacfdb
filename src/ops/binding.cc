#include "ops/binding.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace ridge {

int64_t Dims::operator[](std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  std::fprintf(stderr, "ridge: an operator's description asks for dim '%.*s', which no operand has\n",
               static_cast<int>(name.size()), name.data());
  std::abort();
}

std::vector<std::string> dim_words(const char* dims) {
  std::vector<std::string> words;
  std::string word;
  for (const char* c = dims;; ++c) {
    if (*c != ' ' && *c != 0) {
      word += *c;
      continue;
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
    if (*c == 0) return words;
  }
}

Shape shape_of(const char* dims, const Dims& values) {
  Shape shape;
  for (const auto& word : dim_words(dims))
    shape.push_back(word[0] >= '0' && word[0] <= '9' ? std::atoll(word.c_str()) : values[word]);
  return shape;
}

SplitBytes split_bytes(const Tensor& t, int64_t elements) {
  if (t.layout != nullptr) {
    const int64_t rows = t.dim(0), columns = t.dim(1), all = t.elements();
    const int64_t total = t.layout->bytes(rows, columns), scales = t.layout->scale_bytes(rows, columns);
    if (elements == all || all == 0) return {total - scales, scales};
    // Single rows: what one takes in a matrix that no padding fills up.
    constexpr int64_t kWhole = 4096;
    const auto of_rows = [&](int64_t bytes) {
      return static_cast<int64_t>(static_cast<double>(bytes) / kWhole * static_cast<double>(elements) /
                                  static_cast<double>(columns));
    };
    const int64_t row_scales = of_rows(t.layout->scale_bytes(kWhole, columns));
    return {of_rows(t.layout->bytes(kWhole, columns)) - row_scales, row_scales};
  }
  const int64_t blocks = elements / dtype_block(t.dtype), bytes = blocks * dtype_block_bytes(t.dtype);
  int64_t scale_bytes = 0;  // of a block
  switch (t.dtype) {
    case kQ8_0:
    case kQ4_0:
    case kQ5_0:
      scale_bytes = 2;
      break;
    case kQ4_1:
      scale_bytes = 4;
      break;
    case kQ4_K:
      scale_bytes = 16;
      break;
    case kQ6_K:
      scale_bytes = 18;
      break;
    default:
      break;
  }
  return {bytes - blocks * scale_bytes, blocks * scale_bytes};
}

Status bind_operand(const char* op, const char* operand, const Tensor& t, const char* dims, Dims* bound) {
  const auto words = dim_words(dims);
  if (t.rank() != static_cast<int>(words.size()))
    return invalid_argument(op, ": operand ", operand, " has shape ", t.shape.str(), ", needs [", dims, "]");
  for (int i = 0; i < t.rank(); ++i) {
    const std::string& word = words[static_cast<size_t>(i)];
    if (t.dim(i) < 0)
      return invalid_argument(op, ": operand ", operand, " has shape ", t.shape.str(), ": a dim below 0");
    if (word[0] >= '0' && word[0] <= '9') {
      if (t.dim(i) != std::atoll(word.c_str()))
        return invalid_argument(op, ": operand ", operand, " has shape ", t.shape.str(), ", needs [", dims,
                                "]");
    } else if (!bound->has(word)) {
      bound->set(word, t.dim(i));
    } else if ((*bound)[word] != t.dim(i)) {
      return invalid_argument(op, ": operand ", operand, " has shape ", t.shape.str(), ", needs [", dims,
                              "] with ", word, " = ", (*bound)[word], " as in the operands before it");
    }
  }
  return {};
}

Status check_param(const char* op, std::string_view name, double value, double least, double most) {
  if (value >= least && value <= most && value == std::floor(value)) return {};
  return invalid_argument(op, ": ", name, " is ", value, ", needs an integer from ", least, " to ", most);
}

Status bad_dtype(const char* op, const char* operand, DType found, const std::vector<DType>& wanted) {
  std::string list;
  for (const DType d : wanted) list += text(list.empty() ? "" : ", ", dtype_name(d));
  return invalid_argument(op, ": operand ", operand, " is ", dtype_name(found), ", needs ", list);
}

}  // namespace ridge
