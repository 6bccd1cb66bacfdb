#pragma once
// What a test does less of under a sanitizer, which makes it ten times slower: sizes and repetitions that
// lead through the same code. The release build runs all of it.

namespace ridge {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace ridge
