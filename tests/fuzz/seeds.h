#pragma once
// Seeds that a fuzzing target makes itself. Call from LLVMFuzzerInitialize, which sees the command line
// before libFuzzer reads its corpus.

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "base/files.h"

namespace ridge {

/// Writes the seeds into the first folder of the command line: the corpus.
inline void write_seeds(int argc, char** argv, std::span<const std::string> seeds) {
  int at = 1;
  while (at < argc && argv[at][0] == '-') ++at;
  if (at == argc || InputFile::open(argv[at]).ok()) return;  // no corpus, or one file to try again
  for (size_t i = 0; i < seeds.size(); ++i) {
    const Status status = write_file_atomically(text(argv[at], "/seed-", i), seeds[i]);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
  }
}

/// Ends the run, so that libFuzzer keeps the input, when something that must hold does not.
#define RIDGE_FUZZ_CHECK(condition)                                                       \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

}  // namespace ridge
