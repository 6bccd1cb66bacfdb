#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace ridge {
namespace {

TEST(Utf8, well_formed_sequences_only) {
  for (const std::string_view good :
       {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa9z"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const std::string_view bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xe1\x80", "\xe1\x80\x41", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf0\x90\x80",
        "\xf5\x80\x80\x80", "\xff", "a\xc3"})
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
}

}  // namespace
}  // namespace ridge
