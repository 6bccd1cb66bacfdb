#pragma once
// Makes and asks tokenizers in tests; a refusal must name what it refuses.

#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>

#include "formats/tokenizer_specs.h"

namespace ridge {

using Ids = std::vector<int32_t>;

inline Tokenizer made(TokenizerSpec spec) {
  auto result = Tokenizer::make(std::move(spec));
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    std::abort();
  }
  return *result;
}

inline Ids ids(const Tokenizer& t, std::string_view text, const EncodeOptions& options = {}) {
  auto result = t.encode(text, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : Ids();
}

// What the error must name.
inline void refused(TokenizerSpec spec, std::initializer_list<const char*> names,
                    Code code = Code::kCorrupt) {
  const auto result = Tokenizer::make(std::move(spec));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code);
  for (const char* name : names)
    EXPECT_NE(result.status().message().find(name), std::string::npos)
        << result.status().message() << " lacks " << name;
}

}  // namespace ridge
