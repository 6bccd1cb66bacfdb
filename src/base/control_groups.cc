#include "base/control_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace ridge {

namespace {

void add_with_those_above(int version, const std::string& mount, std::string group,
                          std::vector<ControlGroup>* out) {
  if (group == "/") group.clear();
  for (;; group.resize(group.rfind('/'))) {
    out->push_back({version, mount + group + "/", group.empty() ? "/" : group});
    if (group.rfind('/') == std::string::npos) return;
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& proc,
                                         const std::string& cgroups) {
  std::vector<ControlGroup> out;
  // Lines "7:cpu,memory:/a/b" of version 1, "0::/a/b" of version 2; both may be there.
  const std::string lines = kernel_file(proc + "/self/cgroup");
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string line = lines.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") add_with_those_above(2, cgroups, group, &out);
    if (controllers.find(text(",", controller, ",")) != std::string::npos)
      add_with_those_above(1, text(cgroups, "/", controller), group, &out);
  }
  return out;
}

std::string kernel_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return "";
  char content[16 << 10];
  size_t length = 0;
  ssize_t got;
  while ((got = ::read(descriptor, content + length, sizeof content - length)) > 0)
    length += static_cast<size_t>(got);
  ::close(descriptor);
  return std::string(content, length);
}

std::optional<int64_t> leading_number(std::string_view text) {
  const size_t digit = text.find_first_not_of(" \t");
  if (digit == std::string_view::npos) return {};
  int64_t out;
  const auto read = std::from_chars(text.data() + digit, text.data() + text.size(), out);
  if (read.ec != std::errc()) return {};
  return out;
}

}  // namespace ridge
