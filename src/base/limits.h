#pragma once
// Every limit on input from outside, in one place. Exceeding one is a Status that states value and limit.

#include <cstdint>

namespace ridge::limits {

// Model files
inline constexpr uint64_t kGgufMetadataRecords = 1u
                                                 << 18;  // with the next: what the table in memory may take
inline constexpr uint64_t kGgufTensors = 1u << 18;
inline constexpr uint64_t kGgufHeaderBytes = 2u << 30;   // all before the tensor data
inline constexpr uint64_t kGgufNameBytes = 64u << 10;    // a key or a tensor name
inline constexpr uint64_t kGgufStringBytes = 64u << 20;  // a string value (chat templates are the longest)
inline constexpr uint64_t kGgufArrayDepth = 4;
inline constexpr uint64_t kGgufAlignment = 64u << 10;
inline constexpr int kGgufTensorRank = 4;
inline constexpr int64_t kModelLayers = 4096;
inline constexpr int64_t kModelWidth = 1 << 24;  // hidden, heads * head_dim, MLP, ...
inline constexpr int64_t kModelContext = 1 << 27;

// Tokenizer
inline constexpr int64_t kVocabulary = 1 << 21;
inline constexpr int64_t kPieceBytes = 16 << 10;       // one vocabulary entry
inline constexpr int64_t kAddedTokenBytes = 16 << 20;  // control and user-defined entries together
inline constexpr int64_t kTextBytes = 256ll << 20;     // one text to encode

// Chat template
inline constexpr int64_t kTemplateBytes = 1 << 20;
inline constexpr int64_t kTemplateDepth = 64;       // nesting of blocks and expressions
inline constexpr int64_t kTemplateSteps = 1000000;  // fuel of one rendering
inline constexpr int64_t kTemplateOutputBytes = 16 << 20;
inline constexpr int64_t kTemplateRange = 100000;      // elements of range()
inline constexpr int64_t kTemplateTreeDepth = 512;     // operators in a row, as in a + b + c + ...
inline constexpr int64_t kTemplateRecursion = 2000;    // evaluations within evaluations, macros included
inline constexpr int64_t kTemplateValueDepth = 128;    // lists within lists
inline constexpr int64_t kTemplateBytesPerStep = 128;  // text that one step of fuel pays for

// JSON from outside (messages, configuration)
inline constexpr int64_t kJsonDepth = 64;
inline constexpr int64_t kJsonBytes = 64 << 20;
inline constexpr int64_t kMessages = 4096;

// Engine
inline constexpr int64_t kBatchSequences = 4096;
inline constexpr int kThreads = 1024;

}  // namespace ridge::limits
