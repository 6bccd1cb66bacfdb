#pragma once
// Parsing of a GGUF file's header, metadata and tensor table.

#include "base/files.h"
#include "base/status.h"
#include "formats/gguf.h"

namespace ridge {

/// Errors as GgufFile::open.
Status parse_gguf(const InputFile& file, GgufContents* out);

}  // namespace ridge
