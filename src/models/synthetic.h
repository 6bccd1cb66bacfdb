#pragma once
// Files of known models without their values: names, shapes, types, keys and a vocabulary of the right size,
// for speed at real size without a download.

#include <memory>
#include <string>

#include "formats/gguf.h"

namespace ridge {

class SyntheticFile {
 public:
  /// Errors: kNotFound naming the models that there are.
  static Result<std::unique_ptr<SyntheticFile>> create(const std::string& model);
  ~SyntheticFile();
  const GgufFile& file() const { return *file_; }

 private:
  SyntheticFile() = default;
  // Address space of the file's size, of which only the header takes memory.
  void* space_ = nullptr;
  size_t bytes_ = 0;
  std::unique_ptr<GgufFile> file_;
};

}  // namespace ridge
