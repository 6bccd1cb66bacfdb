// Ids of real vocabularies against the reference libraries' (tests/goldens/**/tokenizer.json), and pre-token
// pieces (tests/goldens/pretokenizers.json). How the goldens were made: tools/goldens/make_tokenizer.py.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_split.h"

namespace ridge {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

Json golden(const std::string& name) {
  std::ifstream in(std::string(RIDGE_TEST_DATA) + "/goldens/" + name);
  EXPECT_TRUE(in.good()) << name;
  return Json::parse(in);
}

struct Model {
  const char* name;
  const char* variable;  // of the environment: the path of the GGUF file
};

class TokenizerParity : public testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const char* path = std::getenv(GetParam().variable);
    if (path == nullptr || *path == 0)
      GTEST_SKIP() << "set " << GetParam().variable << " to the model's GGUF file";
    auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    auto loaded = load_tokenizer(*file);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    tokenizer_.emplace(*loaded);
    golden_ = golden(std::string(GetParam().name) + "/tokenizer.json");
  }
  Ids ids(const std::string& text, bool parse) const {
    EncodeOptions options;
    options.parse_special = parse;
    auto result = tokenizer_->encode(text, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : Ids();
  }
  std::optional<Tokenizer> tokenizer_;
  Json golden_;
};

TEST_P(TokenizerParity, I23_ids_equal_the_reference_librarys) {
  ASSERT_GT(golden_["cases"].size(), 300u);
  for (const Json& c : golden_["cases"])
    ASSERT_EQ(ids(c["text"], false), c["ids"].get<Ids>()) << printable(c["text"].get<std::string>());
}

TEST_P(TokenizerParity, I26_control_tokens_are_parsed_only_when_asked) {
  ASSERT_GT(golden_["special_cases"].size(), 5u);
  for (const Json& c : golden_["special_cases"]) {
    const std::string text = c["text"];
    ASSERT_EQ(ids(text, false), c["plain_ids"].get<Ids>()) << printable(text);
    ASSERT_EQ(ids(text, true), c["parsed_ids"].get<Ids>()) << printable(text);
    EncodeOptions users;
    users.parse_special = true;
    users.untrusted = {{0, text.size()}};
    ASSERT_EQ(*tokenizer_->encode(text, users), c["plain_ids"].get<Ids>()) << printable(text);
  }
}

TEST_P(TokenizerParity, I22_long_repetitions_equal_the_reference_librarys) {
  ASSERT_GT(golden_["long_cases"].size(), 5u);
  for (const Json& c : golden_["long_cases"]) {
    std::string text;
    for (int i = 0; i < c["count"].get<int>(); ++i) text += c["unit"].get<std::string>();
    Ids wanted = c["head"].get<Ids>();
    const Ids cycle = c["cycle"].get<Ids>(), tail = c["tail"].get<Ids>();
    for (int i = 0; i < c["times"].get<int>(); ++i) wanted.insert(wanted.end(), cycle.begin(), cycle.end());
    wanted.insert(wanted.end(), tail.begin(), tail.end());
    ASSERT_TRUE(ids(text, false) == wanted) << printable(c["unit"].get<std::string>());
  }
}

TEST_P(TokenizerParity, text_comes_back_but_for_bytes_without_token) {
  std::string missing;
  if (golden_.contains("missing_bytes"))
    for (const Json& b : golden_["missing_bytes"]) missing += static_cast<char>(b.get<int>());
  for (const Json& c : golden_["cases"]) {
    const std::string text = c["text"];
    if (text.find("\u2581") != text.npos && tokenizer_->pre().empty()) continue;  // comes back as a space
    std::string left, got;
    for (const char b : text)
      if (missing.find(b) == missing.npos) left += b;
    ASSERT_EQ(tokenizer_->unencodable(text), static_cast<int64_t>(text.size() - left.size()))
        << printable(text);
    for (const int32_t id : ids(text, false)) got += tokenizer_->piece(id);
    ASSERT_EQ(got, left);
    ASSERT_EQ(tokenizer_->decode(ids(text, false)), valid_utf8(left));
  }
}

TEST_P(TokenizerParity, special_ids_are_the_files) {
  EXPECT_EQ(tokenizer_->bos(), golden_["bos"].get<int32_t>());
  EXPECT_EQ(tokenizer_->eos(), golden_["eos"].get<int32_t>());
  EXPECT_EQ(tokenizer_->add_bos(), golden_["add_bos"].get<bool>());
  EXPECT_TRUE(tokenizer_->is_end(tokenizer_->eos()));
}

INSTANTIATE_TEST_SUITE_P(Models, TokenizerParity,
                         testing::Values(Model{"smollm2", "RIDGE_SMOLLM2"}, Model{"gemma3", "RIDGE_GEMMA3"}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(TokenizerSplit, pieces_equal_the_published_expressions) {
  const Json all = golden("pretokenizers.json");
  ASSERT_GT(all["cases"].size(), 50u);
  for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "smollm"})
    for (const Json& c : all["cases"]) {
      const std::string text = c["text"];
      std::vector<std::string> pieces;
      for (size_t at = 0; at < text.size();) {
        const size_t end =
            tokenizer::split_end(*tokenizer::split_by_name(name), CharClasses::get(), text, at);
        ASSERT_GT(end, at);
        pieces.push_back(text.substr(at, end - at));
        at = end;
      }
      EXPECT_EQ(pieces, c[name].get<std::vector<std::string>>()) << name << " " << printable(text);
    }
}

}  // namespace
}  // namespace ridge
