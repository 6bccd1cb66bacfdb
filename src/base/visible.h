#pragma once
// Lines for a terminal that hold text from a file or a user.

#include <string>
#include <string_view>

namespace ridge {

/// `line` as one line that cannot drive a terminal: its control and format characters and invalid UTF-8
/// become what printable() makes of them; the rest stays. Cut after at most `limit` bytes, between
/// characters.
std::string visible(std::string_view line, size_t limit = 8192);

}  // namespace ridge
