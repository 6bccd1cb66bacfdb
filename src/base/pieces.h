#pragma once
// Work on outside data that threads share piece by piece: reading, packing.

#include <cstdint>
#include <functional>

#include "base/status.h"

namespace ridge {

/// Calls work(piece, thread) once for each piece in [0, pieces), on the calling thread and up to threads - 1
/// of its own, thread in [0, threads). After an error no new piece is begun. Fewer threads than asked for do
/// all the work where no more can be had. Errors: the first that `work` returned; kResourceExhausted when it
/// threw for want of memory; kCancelled once a stop is requested (base/stop.h).
Status for_each_piece(int threads, int64_t pieces,
                      const std::function<Status(int64_t piece, int thread)>& work);

}  // namespace ridge
