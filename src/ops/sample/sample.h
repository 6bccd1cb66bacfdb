#pragma once

#include "ops/dispatch.h"
#include "ops/operator.h"

namespace ridge {

/// What became of a row. Other rows are never affected.
enum SampleStatus : int32_t {
  kSampleOk = 0,
  kSampleNan = 1,           // a live logit is NaN, or became NaN by a bias
  kSampleNoCandidate = 2,   // every live logit is -inf, or there is none
  kSampleBadParameter = 3,  // a parameter of this row is out of the range that SampleArgs states
  kSampleBadId = 4          // an id of history or bias_ids is neither in [0, vocab) nor padding
};
/// "fine", "a logit is NaN" …: what a message says of a status.
const char* sample_status_name(int32_t status);

struct SampleArgs {
  Tensor ids;         // out [rows] i32; -1 when the status is not 0
  Tensor status;      // out [rows] i32: SampleStatus
  Tensor logprob;     // out [rows] f32, nats: log softmax(logits)[id] over the raw logits at temperature 1,
                      // before penalties, biases and filters; NaN when the status is not 0
  Tensor logits;      // in  [rows, columns] f32; lanes from vocab on are never read
  int64_t vocab = 0;  // live columns; 0: all
  Tensor
      temperature;   // in  [rows] f32 >= 0, finite; 0: the largest adjusted logit, lowest id on ties, no draw
  Tensor top_k;      // in  [rows] i32 >= 0; 0, or at least vocab: off
  Tensor top_p;      // in  [rows] f32 in [0, 1]; 1: off, 0: the likeliest alone
  Tensor min_p;      // in  [rows] f32 in [0, 1]; 0: off
  Tensor seed;       // in  [rows] i64: the key of the draw
  Tensor position;   // in  [rows] i64: its counter
  Tensor history;    // in  [rows, history_length] i32, optional: prompt and answer, ends at the first -1
  Tensor penalties;  // in  [rows, 3] f32, optional, needs history: repetition > 0 (0 or 1: off), presence,
                     // frequency (0: off), all finite
  Tensor bias_ids;   // in  [rows, biases] i32, optional: ends at the first -1
  Tensor bias_values;  // in  [rows, biases] f32, with bias_ids: added; -inf bans, +inf forces
};
/// One token a row. In this order:
///   1. penalties on tokens of the history: logit / repetition where positive, logit * repetition elsewhere;
///      minus presence; minus frequency * occurrences. Rounded to f32 once a token.
///   2. logit + bias, rounded to f32 once an entry.
///   3. weight[i] = exp((logit[i] - largest) / temperature).
///   4. top-k: the k largest adjusted logits, of equal ones the lowest ids.
///   5. top-p: of these in the same order, the shortest prefix with sum of weights >= top_p * their sum.
///   6. min-p: of these, weight >= min_p (the largest weight is 1). Both accept a shortfall of 2^-20 of the
///      wanted value, so that rounding adds no token to {.5, .25} at top_p .75.
///   7. u = the top 53 bits of Philox4x32-10 words 0 and 1 at key seed, counter position, times 2^-53; the
///      first id, in ascending order of id, whose running sum of kept weights exceeds u * their sum.
/// A row depends on its own operands alone: not on other rows, threads or earlier calls. Of logits +inf
/// (after adjustment) each has weight 1 and all others 0. Zeroed parameters mean greedy. Errors:
/// kInvalidArgument, naming operand, row, value found, value wanted. Parameters of rows are examined here on
/// a CPU stream; on other devices, and in step plans, a bad one gives that row's status. Source: Keskar et
/// al. 2019 (CTRL), §4.1 (repetition, as in Hugging Face transformers); OpenAI API reference (presence,
/// frequency, logit_bias); Fan et al. 2018 (top-k); Holtzman et al. 2020 (top-p); Nguyen et al. 2024 (min-p);
/// Salmon et al. 2011 (Philox).
Status sample(Stream& stream, const SampleArgs& args);
RIDGE_OPERATOR(SampleArgs, describe_sample)

}  // namespace ridge
