// gpu_bench OUT_FOLDER COMMIT [check|ceiling|linear|attention|prefill|rows|packed|sweep ...]: device
// checks and figures (README.md).

#include <cstdio>
#include <set>

#include "harness.h"
#include "runtime/cuda/cublaslt.h"

int main(int argc, char** argv) {
  using namespace ridge::bench;
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: gpu_bench OUT_FOLDER COMMIT [check] [ceiling] [linear] [attention] [prefill] [rows] "
                 "[packed] [sweep]\n");
    return 2;
  }
  std::set<std::string> what;
  std::string command = "gpu_bench";
  for (int i = 3; i < argc; ++i) what.insert(argv[i]), command += std::string(" ") + argv[i];
  int failures = 0;
  {
    Session session(argv[1], argv[2], command);
    const bool sweep = what.count("sweep") > 0;
    if (what.count("check")) {
      check_vocabulary(session);
      check_linear(session);
      check_rows(session);
      check_attention(session);
      check_prefill(session);
    }
    if (what.count("ceiling") || what.count("linear") || what.count("attention") || what.count("packed"))
      run_ceiling(session);
    if (what.count("linear")) {
      session.note(ridge::CublasLt::used().describe());
      LinearPeer cublas;
      bench_linear(session, cublas, sweep);
      bench_prompts(session);
    }
    if (what.count("attention")) bench_attention(session, sweep);
    if (what.count("prefill")) bench_prefill(session);
    if (what.count("rows")) bench_rows(session, sweep);
    if (what.count("packed")) bench_packed(session, sweep);
    failures = session.failures();
  }
  return failures == 0 ? 0 : 1;
}
