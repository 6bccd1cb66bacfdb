// Loading a model of real size: how fast it is ready, what it takes at its peak, and that nothing is put off
// to the first tokens. Weights are random codes, written straight into the file.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "account/recorder.h"
#include "busy.h"
#include "engine/generate.h"
#include "sanitized.h"

namespace ridge {
namespace {

// A sanitizer's build is slower by ten, and its shadow is resident: there only the content counts.
constexpr bool kMeasured = !kSanitized;

constexpr int64_t kLayers = kMeasured ? 8 : 1, kHidden = 2048, kInner = 6144, kVocab = 8192;
constexpr int64_t kLargest = kInner * kHidden / 32 * 34;

/// About 450 MB of q8_0 in the page cache, removed with the object.
class LargeFile {
 public:
  LargeFile() : path_(text(testing::TempDir(), getpid(), "-large.gguf")) {
    GgufWriter w;
    w.add_string("general.architecture", "llama");
    const auto number = [&](const char* key, int64_t v) {
      w.add_u32(text("llama.", key), static_cast<uint32_t>(v));
    };
    number("block_count", kLayers), number("embedding_length", kHidden),
        number("feed_forward_length", kInner);
    number("attention.head_count", 16), number("attention.head_count_kv", 4), number("context_length", 512);
    number("vocab_size", kVocab);
    w.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    w.add_f32("llama.rope.freq_base", 10000.0f);
    matrix(&w, "token_embd.weight", kVocab, kHidden);
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string at = text("blk.", i, ".");
      ones(&w, at + "attn_norm.weight"), ones(&w, at + "ffn_norm.weight");
      matrix(&w, at + "attn_q.weight", kHidden, kHidden),
          matrix(&w, at + "attn_k.weight", kHidden / 4, kHidden);
      matrix(&w, at + "attn_v.weight", kHidden / 4, kHidden),
          matrix(&w, at + "attn_output.weight", kHidden, kHidden);
      matrix(&w, at + "ffn_gate.weight", kInner, kHidden), matrix(&w, at + "ffn_up.weight", kInner, kHidden);
      matrix(&w, at + "ffn_down.weight", kHidden, kInner);
    }
    ones(&w, "output_norm.weight");
    const Status written = w.write(path_);
    EXPECT_TRUE(written.ok()) << written.message();
  }
  ~LargeFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  static void ones(GgufWriter* w, const std::string& name) {
    static const std::vector<float> values(kHidden, 1.0f);
    w->add_tensor(name, kF32, {kHidden}, values.data());
  }
  /// Rows of q8_0 whose codes are noise and whose scales keep sums near 1.
  static void matrix(GgufWriter* w, const std::string& name, int64_t rows, int64_t columns) {
    const int64_t row_bytes = columns / 32 * 34;
    w->add_tensor(name, kQ8_0, {rows, columns}, [=](int64_t first, int64_t count, std::byte* out) {
      Random random(static_cast<uint64_t>(first + rows));
      std::vector<std::byte> noise(4096);
      for (std::byte& b : noise) b = static_cast<std::byte>(random.below(256));
      const f16 scale = to_f16(0.01f / std::sqrt(static_cast<float>(columns)));
      for (int64_t r = 0; r < count; ++r)
        for (int64_t block = 0; block < columns / 32; ++block) {
          std::byte* const at = out + r * row_bytes + block * 34;
          std::memcpy(at, &scale, 2);
          std::memcpy(at + 2, noise.data() + (r * 37 + block * 32) % (4096 - 32), 32);
        }
      return Status();
    });
  }
  std::string path_;
};

struct Opened {
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Model> model;
};
Opened open_model(const std::string& path, int threads) {
  Opened o;
  auto file = GgufFile::open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  o.file = std::make_unique<GgufFile>(file.take());
  o.device = CpuDevice::create({.threads = threads}).take();
  auto model = load_model(*o.device, *o.file);
  EXPECT_TRUE(model.ok()) << model.status().message();
  o.model = model.take();
  return o;
}

/// A line "name:  123 kB" of /proc/self/status, in bytes.
int64_t status_bytes(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name + ":", 0) == 0) return std::atoll(line.c_str() + name.size() + 1) * 1024;
  return -1;
}

class Loading : public testing::Test {
 protected:
  static void SetUpTestSuite() { file_ = new LargeFile; }
  static void TearDownTestSuite() { delete file_; }
  static LargeFile* file_;
};
LargeFile* Loading::file_ = nullptr;

TEST_F(Loading, K41_the_peak_is_the_file_and_its_largest_tensor_and_64_MiB_at_most) {
  const int64_t before = status_bytes("VmRSS");
  std::ofstream("/proc/self/clear_refs") << "5";  // the high-water mark starts anew
  const Opened o = open_model(file_->path(), 2);
  const int64_t peak = status_bytes("VmHWM") - before, size = static_cast<int64_t>(o.file->file_bytes());
  std::printf("  file %.1f MB, resident peak %.1f MB\n", double(size) * 1e-6, double(peak) * 1e-6);
  ASSERT_GT(before, 0);
  if (!kMeasured) GTEST_SKIP() << "a sanitizer's shadow is resident too";
  EXPECT_GT(peak, size / 2) << "the weights are not resident, or the mark was not reset";
  EXPECT_LE(peak, size + kLargest + (64 << 20));
}

TEST_F(Loading, K41_the_time_falls_with_threads) {
  if (allowed_cores() < 2) GTEST_SKIP() << "one core: there is nothing to divide";
  // Until it holds: other work on the machine only adds.
  double best_one = 1e9, best_two = 1e9;
  for (int run = 0; run < 8 && (run < 2 || best_two > 0.8 * best_one); ++run) {
    for (const int threads : {1, 2}) {
      const int64_t begin = now_ns();
      open_model(file_->path(), threads);
      double& best = threads == 1 ? best_one : best_two;
      best = std::min(best, double(now_ns() - begin) * 1e-9);
    }
  }
  std::printf("  ready after %.3f s with 1 thread, %.3f s with 2\n", best_one, best_two);
  if (!kMeasured) GTEST_SKIP() << "a sanitizer's time says nothing";
  if (const double cores = cores_for_two_threads(); best_two > 0.8 * best_one && cores < 1.8)
    GTEST_SKIP() << "the machine is busy: two threads have " << cores << " cores";
  EXPECT_LE(best_two, 0.8 * best_one);
}

TEST_F(Loading, I10_ready_at_1_GB_a_second_and_the_first_decoded_token_takes_at_most_twice_the_median) {
  double best_rate = 0, best_ratio = 1e9;
  // Until it holds, five times at most: other work on the machine only adds.
  for (int run = 0; run < 5 && (best_rate < 1 || best_ratio > 2); ++run) {
    const int64_t begin = now_ns();
    const Opened o = open_model(file_->path(), 1);
    EngineOptions options;
    options.kv.context = 512;
    auto engine = InferenceEngine::create(*o.device, *o.model, options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    best_rate = std::max(best_rate, double(o.file->file_bytes()) / double(now_ns() - begin));
    ASSERT_TRUE((*engine)->submit(request({1, 2, 3}, 22)).ok());
    std::vector<double> tokens;
    while (!(*engine)->idle()) {
      const int64_t start = now_ns();
      const auto events = (*engine)->step();
      ASSERT_TRUE(events.ok()) << events.status().message();
      tokens.push_back(double(now_ns() - start) * 1e-6);
    }
    ASSERT_EQ(tokens.size(), 22u);
    tokens.erase(tokens.begin());  // the prompt's
    const double first = tokens.front();
    std::nth_element(tokens.begin(), tokens.begin() + 10, tokens.end());
    std::printf("  ready at %.2f GB/s; first decoded token %.2f ms, median %.2f ms\n", best_rate, first,
                tokens[10]);
    best_ratio = std::min(best_ratio, first / tokens[10]);
  }
  if (!kMeasured) GTEST_SKIP() << "a sanitizer's time says nothing";
  EXPECT_GE(best_rate, 1.0);
  EXPECT_LE(best_ratio, 2.0);
}

}  // namespace
}  // namespace ridge
