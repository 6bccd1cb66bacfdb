#include "formats/tokenizer_gguf.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "formats/gguf_writer.h"
#include "formats/tokenizer_checks.h"

namespace ridge {
namespace {

GgufWriter written(const TokenizerSpec& spec) {
  GgufWriter w;
  w.add_string("tokenizer.ggml.model", spec.model);
  if (!spec.pre.empty()) w.add_string("tokenizer.ggml.pre", spec.pre);
  if (!spec.tokens.empty()) w.add_string_array("tokenizer.ggml.tokens", spec.tokens);
  if (!spec.merges.empty()) w.add_string_array("tokenizer.ggml.merges", spec.merges);
  if (!spec.scores.empty()) w.add_f32_array("tokenizer.ggml.scores", spec.scores);
  if (!spec.types.empty()) w.add_i32_array("tokenizer.ggml.token_type", spec.types);
  if (spec.bos >= 0) w.add_u32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(spec.bos));
  if (spec.eos >= 0) w.add_u32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(spec.eos));
  if (spec.unk >= 0) w.add_u32("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(spec.unk));
  return w;
}

Result<Tokenizer> loaded(const GgufWriter& writer, const TokenizerOptions& options = {}) {
  const std::string bytes = *writer.bytes();
  RIDGE_ASSIGN(const auto file, GgufFile::open_memory(std::as_bytes(std::span(bytes)), "small.gguf"));
  return load_tokenizer(file, options);
}

void refuses(const GgufWriter& writer, Code code, std::initializer_list<const char*> names) {
  const auto result = loaded(writer);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code) << result.status().message();
  for (const char* name : names)
    EXPECT_NE(result.status().message().find(name), std::string::npos)
        << result.status().message() << " lacks " << name;
}

TEST(TokenizerGguf, a_file_gives_the_tokenizer_of_its_spec) {
  for (const TokenizerSpec& spec : {small_bpe("smollm"), small_spm()}) {
    const auto t = loaded(written(spec));
    ASSERT_TRUE(t.ok()) << t.status().message();
    EXPECT_EQ(t->hash(), made(spec).hash());
    EXPECT_EQ(t->eos(), spec.eos);
    EXPECT_EQ(ids(*t, "the ab\n\n"), ids(made(spec), "the ab\n\n"));
  }
}

TEST(TokenizerGguf, I23_which_tokenizer_it_is_stands_in_the_log) {
  std::vector<std::string> lines;
  set_log_level(LogLevel::kInfo);
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  const auto bpe = loaded(written(small_bpe("smollm"))), spm = loaded(written(small_spm()));
  set_log_sink(nullptr);
  set_log_level(LogLevel::kWarning);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find(bpe->hash()), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(spm->hash()), std::string::npos) << lines[1];
  EXPECT_NE(bpe->hash(), spm->hash());
}

TEST(TokenizerGguf, flags_of_the_file_are_followed) {
  GgufWriter w = written(small_spm());
  w.add_bool("tokenizer.ggml.add_bos_token", false);
  w.add_bool("tokenizer.ggml.add_eos_token", true);
  w.add_bool("tokenizer.ggml.add_space_prefix", false);
  w.add_u32("tokenizer.ggml.eot_token_id", 264);
  const auto t = loaded(w);
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_FALSE(t->add_bos());
  EXPECT_TRUE(t->add_eos());
  EXPECT_TRUE(t->is_end(264));
  EXPECT_EQ(ids(*t, "ab"), Ids{262});
}

TEST(TokenizerGguf, I9_a_contradictory_file_is_refused_by_name) {
  TokenizerSpec spec = small_bpe();
  spec.eos = 264;
  refuses(written(spec), Code::kCorrupt, {"small.gguf", "eos_token_id", "264"});
  spec = small_spm();
  spec.scores.resize(7);
  refuses(written(spec), Code::kCorrupt, {"small.gguf", "scores", "7", "265"});
  spec.scores.clear();
  refuses(written(spec), Code::kNotFound, {"small.gguf", "tokenizer.ggml.scores"});
  spec = small_bpe();
  spec.merges.clear();
  refuses(written(spec), Code::kNotFound, {"tokenizer.ggml.merges"});
  refuses(GgufWriter(), Code::kNotFound, {"tokenizer.ggml.model"});
  GgufWriter negative = written(small_bpe());
  negative.add_i32("tokenizer.ggml.padding_token_id", -5);
  refuses(negative, Code::kCorrupt, {"padding_token_id", "-5"});
}

TEST(TokenizerGguf, I7_a_list_of_another_type_is_refused_when_it_is_loaded_with_key_and_both_types) {
  const std::vector<float> floats = {1, 2};
  const std::vector<int32_t> integers = {1, 2};
  GgufWriter tokens, merges, scores;
  tokens.add_string("tokenizer.ggml.model", "llama"), tokens.add_f32_array("tokenizer.ggml.tokens", floats);
  refuses(tokens, Code::kCorrupt,
          {"small.gguf", "'tokenizer.ggml.tokens' is array of f32", "array of string"});
  TokenizerSpec spec = small_bpe("smollm");
  spec.merges.clear();
  merges = written(spec);
  merges.add_i32_array("tokenizer.ggml.merges", integers);
  refuses(merges, Code::kCorrupt, {"'tokenizer.ggml.merges' is array of i32", "array of string"});
  spec = small_spm();
  spec.scores.clear();
  scores = written(spec);
  scores.add_i32_array("tokenizer.ggml.scores", integers);
  refuses(scores, Code::kCorrupt, {"'tokenizer.ggml.scores' is array of i32", "array of f32"});
}

TEST(TokenizerGguf, I11_a_missing_or_unknown_pre_tokenizer_is_refused_with_the_remedy) {
  refuses(written(small_bpe("")), Code::kDeclined, {"small.gguf", "missing", "--assume-pre"});
  refuses(written(small_bpe("default")), Code::kDeclined, {"'default'", "--assume-pre"});
  EXPECT_TRUE(loaded(written(small_bpe("default")), {.assume_pre = "llama-bpe"}).ok());
}

TEST(TokenizerGguf, what_changes_the_text_first_is_refused) {
  GgufWriter spaces = written(small_spm()), charsmap = written(small_spm());
  spaces.add_bool("tokenizer.ggml.remove_extra_whitespaces", true);
  refuses(spaces, Code::kDeclined, {"remove_extra_whitespaces"});
  const std::vector<int32_t> map = {1, 2};
  charsmap.add_i32_array("tokenizer.ggml.precompiled_charsmap", map);
  refuses(charsmap, Code::kDeclined, {"precompiled_charsmap"});
}

}  // namespace
}  // namespace ridge
