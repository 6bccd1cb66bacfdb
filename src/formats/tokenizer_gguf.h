#pragma once
// The tokenizer that a GGUF file describes under tokenizer.ggml.*.

#include "base/status.h"
#include "formats/gguf.h"
#include "formats/tokenizer.h"

namespace ridge {

/// Reads the description; what it says is checked by Tokenizer::make.
/// Errors: kNotFound naming a missing key, kCorrupt naming one of another type, kDeclined naming a setting
/// that changes the text before it is tokenized (normalization rules, removal of spaces), which is not done
/// here.
Result<TokenizerSpec> tokenizer_spec(const GgufFile& file);

/// tokenizer_spec and Tokenizer::make; errors begin with the file's path.
Result<Tokenizer> load_tokenizer(const GgufFile& file, const TokenizerOptions& options = {});

}  // namespace ridge
