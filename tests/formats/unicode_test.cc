#include "formats/unicode.h"

#include <gtest/gtest.h>

#include <ctime>

#include "base/sha256.h"
#include "formats/unicode_nfc.h"

namespace ridge {
namespace {

template <class Visit>
void each_code_point(const Visit& visit) {
  for (uint32_t c = 0; c < 0x110000; ++c)
    if (c < 0xd800 || c > 0xdfff) visit(c);
}

TEST(Utf8, every_code_point_reads_back) {
  each_code_point([](uint32_t c) {
    std::string bytes;
    append_utf8(bytes, c);
    const CodePoint read = decode_utf8(bytes, 0);
    ASSERT_TRUE(read.valid && read.value == c && read.bytes == bytes.size()) << c;
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const CodePoint part = decode_utf8(std::string_view(bytes).substr(0, cut), 0);
      ASSERT_TRUE(!part.valid && part.cut && part.bytes == cut) << c;
    }
  });
}

// The examples of The Unicode Standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8, ill_formed_sequences_become_one_replacement_for_each_longest_prefix) {
  EXPECT_EQ(valid_utf8("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"),
            "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"),
            "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA");
  EXPECT_EQ(valid_utf8("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"),
            "\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffdB");
  EXPECT_EQ(valid_utf8("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), "\ufffd\ufffd\ufffd\ufffdA");
}

// Counted by the regular expressions of the reference library (tokenizers 0.23.3) over all code points.
TEST(CharClasses, as_many_letters_numbers_marks_and_spaces_as_the_reference_library_knows) {
  const CharClasses& classes = CharClasses::get();
  int letters = 0, numbers = 0, marks = 0, spaces = 0;
  each_code_point([&](uint32_t c) {
    letters += classes.letter(c);
    numbers += classes.number(c);
    marks += classes.of(c) == CharClass::kMark;
    spaces += classes.space(c);
  });
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(marks, 2501);
  EXPECT_EQ(spaces, 25);
  EXPECT_TRUE(classes.word('_') && classes.word(0x24b6) && classes.word(0x301) && classes.word(0x200d));
  EXPECT_FALSE(classes.word('-') || classes.word(' ') || classes.word(0xbd));
}

TEST(Nfc, composes_orders_and_replaces) {
  EXPECT_EQ(nfc("Cafe\u0301!"), "Caf\u00e9!");
  EXPECT_EQ(nfc("a\u0301\u0323"), "\u1ea1\u0301");           // ordered first, then composed
  EXPECT_EQ(nfc("a\u0305\u0301"), "a\u0305\u0301");          // blocked by the same class
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");            // Hangul
  EXPECT_EQ(nfc("\u212b"), "\u00c5");                        // ANGSTROM SIGN
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093c");                  // excluded from composition
  EXPECT_EQ(nfc("e\xff\u0301 e\xcc"), "e\xff\u0301 e\xcc");  // bytes that are not UTF-8 separate
  EXPECT_FALSE(may_change_in_nfc("Caf\u00e9"));
  EXPECT_TRUE(may_change_in_nfc("Cafe\u0301"));
}

// The digests are those of tokenizers.normalizers.NFC (0.23.3) over the same texts.
TEST(Nfc, of_every_code_point_alone_and_before_marks_equals_the_reference_librarys) {
  Sha256 alone, marked;
  each_code_point([&](uint32_t c) {
    std::string text;
    append_utf8(text, c);
    alone.update(nfc(text));
    marked.update(nfc(text + "\u0301\u0323\u0345\u1161\u11a8"));
  });
  EXPECT_EQ(sha256_hex(alone), "1ffc8e6ce9e83df8e49fd62d6abb68f981775aed0b5101b88c213d4653e9b540");
  EXPECT_EQ(sha256_hex(marked), "e4720bcbb893c11af91d6ef234c6fe522a843ea13146eb65ada20495048f10db");
}

TEST(Nfc, I22_a_million_marks_are_ordered_in_n_log_n) {
  std::string text;
  for (int i = 0; i < 500000; ++i) text += "\u0301\u0323";
  const clock_t start = clock();
  const std::string composed = nfc(text);
  // 20 s for sanitizers; quadratic work would take hours.
  EXPECT_LT(static_cast<double>(clock() - start) / CLOCKS_PER_SEC, 20);
  EXPECT_EQ(composed.size(), text.size());
  EXPECT_EQ(composed.substr(0, 4), "\u0323\u0323");
}

}  // namespace
}  // namespace ridge
