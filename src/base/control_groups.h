#pragma once
// The control groups that this process runs in: where the kernel writes down what it may take.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

struct ControlGroup {
  int version;         // 1 or 2: names of files and their form differ
  std::string folder;  // of its files, with a slash at the end
  std::string name;    // "/" or "/a/b"
};

/// The groups that limit what `controller` ("memory", "cpu") counts for this process, each before the one
/// above it, up to what is mounted. A group of the machine that a container does not see has no files; the
/// container's own then stands at the mount. Other roots than the system's are for tests.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& proc = "/proc",
                                         const std::string& cgroups = "/sys/fs/cgroup");

/// The first 16 KiB of a file of the kernel's (these claim to have no bytes); empty when there is none.
std::string kernel_file(const std::string& path);

/// The number that `text` starts with, after blanks; nothing for a word ("max") or a number beyond 2^63.
std::optional<int64_t> leading_number(std::string_view text);

}  // namespace ridge
