#include "base/user_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace ridge {

namespace {

/// As the system's list of users has it; empty for a user that is not in it.
std::string listed_home() {
  passwd entry{}, *found = nullptr;
  std::vector<char> memory(16 << 10);
  if (getpwuid_r(getuid(), &entry, memory.data(), memory.size(), &found) != 0 || found == nullptr) return "";
  return found->pw_dir != nullptr ? found->pw_dir : "";
}

bool absolute(const char* path) {
  return path != nullptr && *path == '/';
}

}  // namespace

std::string user_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); absolute(cache))
    return std::string(cache) + "/ridge";
  if (const char* home = std::getenv("HOME"); absolute(home)) return std::string(home) + "/.cache/ridge";
  const std::string home = listed_home();
  return absolute(home.c_str()) ? home + "/.cache/ridge" : "";
}

}  // namespace ridge
