#include "base/memory.h"

#include <algorithm>
#include <new>
#include <optional>

#include "base/control_groups.h"

namespace ridge {

namespace {

// The number after `name` at the start of a line.
std::optional<int64_t> field(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.substr(0, name.size()) == name) return leading_number(line.substr(name.size()));
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

// What `group` leaves.
void lessen(const ControlGroup& group, MemoryRoom* room) {
  const Version& version = group.version == 1 ? kVersion1 : kVersion2;
  const auto limit = leading_number(kernel_file(group.folder + version.limit));
  if (!limit) return;
  const std::string facts = kernel_file(group.folder + "memory.stat");
  const int64_t cache = field(facts, version.inactive).value_or(0) + field(facts, version.active).value_or(0);
  const int64_t used =
      std::max<int64_t>(leading_number(kernel_file(group.folder + version.usage)).value_or(0) - cache, 0);
  const int64_t left = std::max<int64_t>(*limit - used, 0);
  if (left < room->bytes)
    *room = {left, text(version.limit, " of cgroup ", group.name, " is ", bytes_text(double(*limit)))};
}

}  // namespace

Result<MemoryRoom> memory_room(const std::string& proc, const std::string& cgroups) try {
  const auto available = field(kernel_file(proc + "/meminfo"), "MemAvailable:");
  if (!available) return not_found(proc, "/meminfo does not say MemAvailable");
  MemoryRoom room = {*available * 1024, "the machine's available memory"};
  for (const ControlGroup& group : control_groups("memory", proc, cgroups)) lessen(group, &room);
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
