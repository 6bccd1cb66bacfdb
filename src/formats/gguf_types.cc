#include "formats/gguf_types.h"

namespace ridge {

namespace {
constexpr GgufTensorType kTypes[] = {
    {0, "f32", 1, 4, kF32},        {1, "f16", 1, 2, kF16},        {2, "q4_0", 32, 18, kQ4_0},
    {3, "q4_1", 32, 20, kQ4_1},    {6, "q5_0", 32, 22, kQ5_0},    {7, "q5_1", 32, 24, {}},
    {8, "q8_0", 32, 34, kQ8_0},    {9, "q8_1", 32, 36, {}},       {10, "q2_k", 256, 84, {}},
    {11, "q3_k", 256, 110, {}},    {12, "q4_k", 256, 144, kQ4_K}, {13, "q5_k", 256, 176, {}},
    {14, "q6_k", 256, 210, kQ6_K}, {15, "q8_k", 256, 292, {}},    {16, "iq2_xxs", 256, 66, {}},
    {17, "iq2_xs", 256, 74, {}},   {18, "iq3_xxs", 256, 98, {}},  {19, "iq1_s", 256, 50, {}},
    {20, "iq4_nl", 32, 18, {}},    {21, "iq3_s", 256, 110, {}},   {22, "iq2_s", 256, 82, {}},
    {23, "iq4_xs", 256, 136, {}},  {24, "i8", 1, 1, {}},          {25, "i16", 1, 2, {}},
    {26, "i32", 1, 4, {}},         {27, "i64", 1, 8, {}},         {28, "f64", 1, 8, {}},
    {29, "iq1_m", 256, 56, {}},    {30, "bf16", 1, 2, kBF16},     {34, "tq1_0", 256, 54, {}},
    {35, "tq2_0", 256, 66, {}},    {39, "mxfp4", 32, 17, {}},     {40, "nvfp4", 64, 36, {}},
    {41, "q1_0", 128, 18, {}},
};

struct ValueType {
  const char* name;
  uint64_t bytes;
};
// A string is at least its length, an array its element type and count.
constexpr ValueType kValueTypes[kGgufTypeCount] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},    {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 8}, {"array", 12}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};
}  // namespace

const GgufTensorType* gguf_tensor_type(uint32_t id) {
  for (const GgufTensorType& type : kTypes)
    if (type.id == id) return &type;
  return nullptr;
}

std::optional<uint32_t> gguf_tensor_type_id(DType dtype) {
  for (const GgufTensorType& type : kTypes)
    if (type.dtype == dtype) return type.id;
  return {};
}

const char* gguf_type_name(GgufType type) {
  return kValueTypes[static_cast<uint32_t>(type)].name;
}
uint64_t gguf_type_bytes(GgufType type) {
  return kValueTypes[static_cast<uint32_t>(type)].bytes;
}

}  // namespace ridge
