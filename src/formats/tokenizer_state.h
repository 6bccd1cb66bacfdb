#pragma once
// What a Tokenizer shares between its copies.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/tokenizer_added.h"
#include "formats/tokenizer_model.h"

namespace ridge::tokenizer {

struct State {
  Vocabulary vocabulary;
  std::unique_ptr<Model> model;                           // refers to vocabulary
  AddedTokens user_defined;                               // match in every text
  AddedTokens all;                                        // and control tokens, where they are parsed
  std::unordered_map<std::string_view, int32_t> written;  // both, by their text
  std::unordered_map<int32_t, AddedTokenRule> rules;
  std::vector<int32_t> ends;
  int32_t bos = -1, eos = -1, unk = -1, pad = -1;
  bool add_bos = false, add_eos = false;
  bool spaces_written = false;  // pieces write a space as U+2581, which in text is then the same as a space
  bool space_prefix = false;
  std::string hash;
  std::string pre;
};

}  // namespace ridge::tokenizer
