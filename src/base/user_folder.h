#pragma once
// Where a program keeps what it measured for its user.

#include <string>

namespace ridge {

/// $XDG_CACHE_HOME/ridge, else ~/.cache/ridge with $HOME, else with the home that the system's list of users
/// names; empty where none of them is an absolute path: then nothing is kept unless the user names a file.
/// Source: XDG Base Directory Specification 0.8.
std::string user_folder();

/// What to say where it is empty.
inline constexpr const char* kNoUserFolder =
    "neither XDG_CACHE_HOME nor HOME is an absolute path, and this user has no home";

}  // namespace ridge
