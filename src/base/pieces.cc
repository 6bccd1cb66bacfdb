#include "base/pieces.h"

#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/stop.h"

namespace ridge {

Status for_each_piece(int threads, int64_t pieces,
                      const std::function<Status(int64_t piece, int thread)>& work) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  Status failed;
  std::atomic<bool> no_memory{false};
  const auto share = [&](int thread) {
    try {
      for (int64_t piece; (piece = next.fetch_add(1)) < pieces;) {
        const Status status = stop_requested() ? check_stop() : work(piece, thread);
        if (status.ok()) continue;
        const std::lock_guard lock(mutex);
        if (failed.ok()) failed = status;
        next = pieces;  // the others stop at their next piece
      }
    } catch (const std::bad_alloc&) {  // also while an error was put into words
      no_memory = true;
      next = pieces;
    }
  };
  std::vector<std::thread> others;
  try {
    for (int thread = 1; thread < threads && thread < pieces; ++thread) others.emplace_back(share, thread);
  } catch (const std::exception&) {
    // No thread, or no memory for one: those that run, and this one, do its work.
  }
  share(0);
  for (std::thread& other : others) other.join();
  RIDGE_TRY(failed);
  if (no_memory) return resource_exhausted("no memory for a piece of the work, or to say what failed");
  return {};
}

}  // namespace ridge
