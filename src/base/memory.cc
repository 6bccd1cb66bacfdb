#include "base/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>

namespace ridge {

namespace {

// The first 16 KiB of a file of the kernel's; these claim to have no bytes. Empty when there is none.
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

std::optional<int64_t> number(std::string_view text) {
  const size_t digit = text.find_first_not_of(" \t");
  if (digit == std::string_view::npos) return {};
  int64_t out;
  const auto read = std::from_chars(text.data() + digit, text.data() + text.size(), out);
  if (read.ec != std::errc()) return {};  // "max", or beyond 2^63: no limit
  return out;
}

// The number after `name` at the start of a line.
std::optional<int64_t> field(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.substr(0, name.size()) == name) return number(line.substr(name.size()));
    at = end + 1;
  }
  return {};
}

struct Version {
  const char *limit, *usage, *inactive, *active;
};
constexpr Version kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
                               "total_active_file "};
constexpr Version kVersion2 = {"memory.max", "memory.current", "inactive_file ", "active_file "};

// What the group at `mount` + `group` and those above it leave.
void lessen(const Version& version, const std::string& mount, std::string group, MemoryRoom* room) {
  for (;; group.resize(group.rfind('/'))) {
    const std::string folder = mount + group + "/";
    const auto limit = number(kernel_file(folder + version.limit));
    if (limit) {
      const std::string facts = kernel_file(folder + "memory.stat");
      const int64_t cache =
          field(facts, version.inactive).value_or(0) + field(facts, version.active).value_or(0);
      const int64_t used =
          std::max<int64_t>(number(kernel_file(folder + version.usage)).value_or(0) - cache, 0);
      const int64_t left = std::max<int64_t>(*limit - used, 0);
      if (left < room->bytes)
        *room = {left, text(version.limit, " of cgroup ", group.empty() ? "/" : group, " is ",
                            bytes_text(double(*limit)))};
    }
    if (group.rfind('/') == std::string::npos) return;
  }
}

}  // namespace

Result<MemoryRoom> memory_room(const std::string& proc, const std::string& cgroups) try {
  const auto available = field(kernel_file(proc + "/meminfo"), "MemAvailable:");
  if (!available) return not_found(proc, "/meminfo does not say MemAvailable");
  MemoryRoom room = {*available * 1024, "the machine's available memory"};
  const std::string groups =
      kernel_file(proc + "/self/cgroup");  // lines "7:cpu,memory:/a/b"; version 2: "0::/a/b"
  for (size_t at = 0; at < groups.size();) {
    const size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == ",,") lessen(kVersion2, cgroups, group, &room);
    if (controllers.find(",memory,") != std::string::npos)
      lessen(kVersion1, cgroups + "/memory", group, &room);
  }
  return room;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory to find out how much there is");
}

Status check_memory(int64_t bytes, std::string_view what) {
  const auto room = memory_room();
  if (!room.ok() || bytes <= room->bytes) return {};
  return resource_exhausted(what, " takes ", bytes, " bytes (", bytes_text(double(bytes)), "), ", room->bytes,
                            " (", bytes_text(double(room->bytes)), ") can be taken: ", room->why);
}

}  // namespace ridge
