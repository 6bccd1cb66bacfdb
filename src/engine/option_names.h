#pragma once
// Options as users write them, by name: the program and the C API read them through here.

#include "engine/session.h"

namespace ridge {

struct NamedOptions {
  std::string isa;          // scalar, avx2, avx512; empty: the widest
  std::string activations;  // int8, bf16, f32; empty: int8 on a CPU, else f32
  std::string kv;           // f32, f16, bf16, q8; empty: f32 where activations says f32, else f16
  std::vector<std::string> without_fusions;  // operators to leave apart, or "all"
  std::string assume_pre;                    // a known pre-tokenizer; empty: the file's
};

/// The format of a KV cache as --kv takes it.
const char* kv_name(DType type);

/// Sets what the names say, with the defaults of options->device.backend; fusions become all fused operators
/// but those named. Errors: kInvalidArgument naming option (behind `prefix`, as "--" or "options->"), value
/// and what to use.
Status apply_names(const NamedOptions& names, std::string_view prefix, SessionOptions* options);

}  // namespace ridge
