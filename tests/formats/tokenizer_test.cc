#include "formats/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "base/sha256.h"
#include "formats/tokenizer_checks.h"
#include "formats/unicode_nfc.h"

namespace ridge {
namespace {

TEST(Sha256, published_vectors) {
  Sha256 empty, abc, million;
  EXPECT_EQ(sha256_hex(empty), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  abc.update("a");
  abc.update("bc");
  EXPECT_EQ(sha256_hex(abc), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (int i = 0; i < 1000; ++i) million.update(std::string(1000, 'a'));
  EXPECT_EQ(sha256_hex(million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, the_processors_instructions_change_nothing) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    Sha256 fast, slow(false);
    fast.update(bytes);
    slow.update(bytes);
    ASSERT_EQ(sha256_hex(fast), sha256_hex(slow)) << i;
    bytes += static_cast<char>(i * 7);
  }
}

TEST(TokenizerBpe, merges_go_by_rank_then_from_the_left) {
  const Tokenizer t = made(small_bpe());
  EXPECT_EQ(ids(t, "the the"), (Ids{260, 261}));
  EXPECT_EQ(ids(t, "aaaaaaa"), (Ids{263, 262, 'a'}));
  EXPECT_EQ(ids(t, ""), Ids());
  // Longer than what is merged without a heap: the same rule.
  EXPECT_EQ(ids(t, std::string(4001, 'a')).size(), 1001u);
  EXPECT_EQ(ids(t, std::string(4001, 'a')).back(), 'a');
}

TEST(TokenizerBpe, words_met_before_have_the_ids_they_had) {
  const Tokenizer t = made(small_bpe());
  std::string text;
  Ids each;
  for (int i = 0; i < 3000; ++i) {
    const std::string word = " the" + std::string(i % 37, 'a') + std::to_string(i % 11);
    text += word;
    const Ids some = ids(t, word);  // too short a text for the cache of words
    each.insert(each.end(), some.begin(), some.end());
  }
  EXPECT_EQ(ids(t, text), each);
}

TEST(TokenizerBpe, llama_bpe_takes_a_word_that_is_a_piece_whole) {
  TokenizerSpec spec = small_bpe("llama-bpe");
  const int32_t whole = add_token(spec, "xyz", TokenType::kNormal);
  EXPECT_EQ(ids(made(spec), "xyz"), Ids{whole});
  spec.pre = "qwen2";
  EXPECT_EQ(ids(made(spec), "xyz"), (Ids{'x', 'y', 'z'}));
}

TEST(TokenizerBpe, a_byte_without_token_is_left_out_and_counted) {
  TokenizerSpec spec = small_bpe();
  spec.tokens[0xff] = "unused entry";
  const Tokenizer t = made(spec);
  EXPECT_EQ(ids(t,
                "a\xff"
                "b"),
            (Ids{'a', 'b'}));
  EXPECT_EQ(t.unencodable("a\xff"
                          "b\xff"),
            2);
}

TEST(TokenizerSpm, merges_go_by_score_and_unknown_characters_become_bytes) {
  const Tokenizer t = made(small_spm());
  EXPECT_EQ(ids(t, "ab"), (Ids{259, 262}));
  EXPECT_EQ(ids(t, "a"), Ids{263});
  EXPECT_EQ(ids(t, "a\xc3\xa9"), (Ids{263, 3 + 0xc3, 3 + 0xa9}));
  EXPECT_EQ(ids(t, "a\n\nb\n"), (Ids{263, 264, 259, 261, 3 + '\n'}));
  EXPECT_EQ(ids(t, "a b"), (Ids{263, 259, 261}));
  EXPECT_EQ(ids(t,
                "a\u2581"
                "b"),
            ids(t, "a b"));
  TokenizerSpec spec = small_spm();
  spec.add_space_prefix = false;
  EXPECT_EQ(ids(made(spec), "ab"), Ids{262});
}

TEST(TokenizerSpm, unused_pieces_are_taken_apart_after_merging) {
  TokenizerSpec spec = small_spm();
  spec.add_space_prefix = false;
  spec.types[262] = static_cast<int32_t>(TokenType::kUnused);
  const int32_t abab = add_token(spec, "abab", TokenType::kNormal, -3);
  EXPECT_EQ(ids(made(spec), "ababab"), (Ids{abab, 260, 261}));
}

TEST(TokenizerDecoder, text_comes_in_whole_characters) {
  const Tokenizer t = made(small_bpe());
  TokenDecoder d(t);
  const std::string smile = "\xf0\x9f\x98\x80";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(d.push(static_cast<uint8_t>(smile[i])), "");
  EXPECT_EQ(d.push(0x80), smile);
  EXPECT_EQ(d.push(0xf0), "");
  EXPECT_EQ(d.push('x'), "\ufffdx");
  EXPECT_EQ(d.push(0xe2), "");
  EXPECT_EQ(d.push(256), "");  // a control token in between gives nothing
  EXPECT_EQ(d.finish(), "\ufffd");
  EXPECT_EQ(d.finish(), "");
  EXPECT_EQ(d.push(-1), "\ufffd");
  EXPECT_EQ(d.push(1 << 30), "\ufffd");
  EXPECT_EQ(t.decode({257, 'a', 256}, true), "<|start|>a<|end|>");
  EXPECT_EQ(t.decode({257, 'a', 256}), "a");
}

TEST(TokenizerDecoder, every_delta_is_utf8_and_together_they_are_the_whole) {
  const Tokenizer t = made(small_bpe());
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    Ids some;
    for (int i = 0; i < 40; ++i) some.push_back(static_cast<int32_t>(random.bits() % 264));
    std::string bytes, deltas;
    TokenDecoder d(t);
    for (const int32_t id : some) {
      if (t.type(id) != TokenType::kControl) bytes += t.piece(id);
      const std::string delta = d.push(id);
      EXPECT_EQ(delta, valid_utf8(delta));
      deltas += delta;
    }
    EXPECT_EQ(deltas + d.finish(), valid_utf8(bytes));
  }
}

TEST(TokenizerDecoder, the_space_put_first_is_dropped_once) {
  const Tokenizer t = made(small_spm());
  EXPECT_EQ(t.decode(ids(t, "ab ab", {.add_bos = true})), "ab ab");
  TokenDecoder going_on(t, {.keep_control = false, .strip_prefix = false});
  EXPECT_EQ(going_on.push(263), " a");
}

TEST(TokenizerQueries, ids_types_ends_and_hash) {
  const Tokenizer t = made(small_bpe());
  EXPECT_EQ(t.vocab(), 264);
  EXPECT_EQ(t.bos(), 257);
  EXPECT_EQ(t.pad(), -1);
  EXPECT_EQ(t.find("<|end|>"), 256);
  EXPECT_EQ(t.find("the"), -1);
  EXPECT_TRUE(t.is_end(256));
  EXPECT_FALSE(t.is_end(257));
  EXPECT_EQ(t.hash().size(), 64u);
  EXPECT_EQ(t.hash(), made(small_bpe()).hash());
  EXPECT_NE(t.hash(), made(small_bpe("qwen2")).hash());
  TokenizerSpec turn = small_bpe();
  turn.tokens[257] = "<|im_end|>";
  EXPECT_TRUE(made(turn).is_end(257));
  turn.types[257] = static_cast<int32_t>(TokenType::kUserDefined);
  EXPECT_FALSE(made(turn).is_end(257));
}
TEST(Tokenizer, every_byte_string_comes_back_from_byte_level_ids) {
  Random random(11);
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    const Tokenizer t = made(small_bpe(pre));
    for (int round = 0; round < 500; ++round) {
      std::string text;
      while (random.bits() % 50 != 0) {
        const uint32_t r = random.bits();
        if (r % 3 == 0) text += static_cast<char>(r >> 8);
        if (r % 3 == 1) append_utf8(text, (r >> 8) % 0xd800);
        if (r % 3 == 2) text += " the aa\r\n'll 12"[(r >> 8) % 15];
      }
      std::string back;
      for (const int32_t id : ids(t, text)) back += t.piece(id);
      ASSERT_EQ(back, std::string_view(pre) == "qwen2" ? nfc(text) : text) << pre;
    }
  }
}

TEST(Tokenizer, threads_share_one_tokenizer) {
  const Tokenizer t = made(small_bpe());
  const std::string text(3000, 'a');
  std::vector<std::thread> threads;
  std::vector<Ids> got(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { got[i] = ids(t, text + " the"); });
  for (auto& thread : threads) thread.join();
  for (const Ids& g : got) EXPECT_EQ(g, got[0]);
}

}  // namespace
}  // namespace ridge
