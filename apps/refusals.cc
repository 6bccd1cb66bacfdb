#include "refusals.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/files.h"
#include "machine/machine.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge::app {

namespace {

namespace fs = std::filesystem;

/// Where a file that does not exist yet would be made: folders resolved, links that lead nowhere followed.
fs::path place_of(fs::path path) {
  std::error_code error;
  constexpr int kMostLinks = 40;  // as the kernel follows
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : place;
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  const bool a_exists = ::stat(a.c_str(), &of_a) == 0, b_exists = ::stat(b.c_str(), &of_b) == 0;
  if (a_exists && b_exists) return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  return a_exists == b_exists && place_of(a) == place_of(b);
}

}  // namespace

Status check_apart(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  std::vector<NamedFile> others = inputs;
  others.push_back({"standard output", "/dev/stdout"});
  others.push_back({"standard error", "/dev/stderr"});
  for (const NamedFile& out : outputs) {
    if (out.path.empty()) continue;
    for (const NamedFile& other : others)
      if (!other.path.empty() && same_file(out.path, other.path))
        return invalid_argument(out.name, " and ", other.name, " are both ", printable(out.path), ": give ",
                                out.name, " a file of its own");
    others.push_back(out);
  }
  return {};
}

Status check_output_file(const char* option, const std::string& path) {
  if (path.empty()) return {};
  const Status status = check_writable(path);
  return status.ok() ? status : invalid_argument(option, ": ", status.message());
}

NamedFile model_input(const CommonOptions& common) {
  return {"MODEL", common.synthetic ? "" : common.model};
}

NamedFile machine_input(const std::string& given, const std::string& device, const std::string& isa) {
  if (!given.empty()) return {"--machine", given};
  std::string of = device;
  if (device == "cpu") {
    const auto asked = parse_isa(isa);
    of = isa_name(asked.ok() ? *asked : native_isa());
  }
  return {"the kept machine file", default_machine_path(of)};
}

Status refuse_given(const CLI::App& verb, std::initializer_list<const char*> options,
                    const std::string& why) {
  for (const char* name : options)
    if (verb.get_option(name)->count() > 0) return invalid_argument(name, " is ", why, ": leave it out");
  return {};
}

}  // namespace ridge::app
