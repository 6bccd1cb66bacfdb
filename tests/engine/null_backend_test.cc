// A second backend that computes nothing: its device has memory, its kernels write down that they were
// called. What passes here proves that weights, plan, workspace, dispatch and engine name no backend of their
// own.

#include "engine/generate.h"
#include "ops/add/add.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/embedding/embedding.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/gelu_mul/gelu_mul.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/quantize_rows/quantize_rows.h"
#include "ops/registry.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/sample/sample.h"
#include "ops/silu_mul/silu_mul.h"

namespace ridge {
namespace {

constexpr int64_t kWorkspace = 12345;
constexpr int32_t kDrawn = 11;

class NullStream final : public Stream {
 public:
  explicit NullStream(const Target& target) : target_(target) {}
  const Target& target() const override { return target_; }
  Status synchronize() override {
    ++synchronized;
    return {};
  }
  static std::vector<std::string> called;  // operators, in order, on all streams
  static int synchronized;

 private:
  const Target& target_;
};
std::vector<std::string> NullStream::called;
int NullStream::synchronized = 0;

class NullDevice final : public Device {
 public:
  explicit NullDevice(std::string backend) : target_{std::move(backend), Isa::none} {}
  const Target& target() const override { return target_; }
  std::string describe() const override { return "nothing"; }
  Result<std::unique_ptr<Stream>> create_stream() override {
    return std::unique_ptr<Stream>(std::make_unique<NullStream>(target_));
  }
  Result<Buffer> allocate(int64_t bytes) override {
    allocated += bytes;
    return Buffer::allocate(bytes);
  }
  Status upload(void* to, const void* from, int64_t bytes) override {
    uploaded += bytes;
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return {};
  }
  Status download(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return {};
  }
  int64_t allocated = 0, uploaded = 0;

 private:
  Target target_;
};

template <class A>
Status note(Stream& stream, const A& args) {
  NullStream::called.push_back(registered<A>().name());
  if constexpr (std::is_same_v<A, LinearArgs>)
    if (stream.workspace_bytes() < kWorkspace) return internal_error("no workspace was lent");
  if constexpr (std::is_same_v<A, SampleArgs>)
    for (int64_t r = 0; r < args.ids.dim(0); ++r) args.ids.set(kDrawn, r);
  return {};
}

template <class A>
void noting(Kernels<A>& kernels) {
  Kernel<A> k;
  k.name = text(registered<A>().name(), "_null");
  k.run = note<A>;
  if constexpr (std::is_same_v<A, LinearArgs>) k.workspace = [](const A&) { return kWorkspace; };
  kernels.add(std::move(k));
}

template <class... A>
void give_kernels(const char* backend) {
  (static_cast<Registered<A>&>(registered<A>()).add(backend, Isa::none, noting<A>), ...);
}

class NullBackend : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    give_kernels<EmbeddingArgs, RmsNormArgs, LinearArgs, QuantizeRowsArgs, RopeArgs, KvWriteArgs,
                 AttentionPrefillArgs, AttentionDecodeArgs, SiluMulArgs, GeluMulArgs, AddArgs, GatherRowsArgs,
                 SampleArgs>("null");
    give_kernels<EmbeddingArgs, RmsNormArgs>("poor");
  }
  void SetUp() override { NullStream::called.clear(), NullStream::synchronized = 0; }
};

TEST_F(NullBackend, weights_reach_the_device_as_the_file_has_them) {
  const TinyFile tiny({});
  NullDevice device("null");
  const auto model = load_model(device, tiny.file());
  ASSERT_TRUE(model.ok()) << model.status().message();
  int matrices = 0;
  for (const LoadedTensor& t : (*model)->weights().loaded()) {
    EXPECT_EQ(t.tensor.layout, nullptr) << t.name << " was packed for a CPU";
    const auto info = tiny.file().tensor(t.name);
    ASSERT_TRUE(info.ok());
    if (t.tensor.dtype != *info->type->dtype) continue;
    std::vector<std::byte> want(static_cast<size_t>(info->bytes));
    ASSERT_TRUE(tiny.file().read(*info, want.data()).ok());
    EXPECT_EQ(std::memcmp(t.tensor.data, want.data(), want.size()), 0) << t.name;
    matrices += t.tensor.rank() == 2;
  }
  EXPECT_EQ(matrices, 2 + 2 * 7);
  EXPECT_GE(device.uploaded, (*model)->weights().bytes());
}

TEST_F(NullBackend, an_engine_runs_a_batch_through_the_other_device) {
  for (const char* architecture : {"llama", "gemma3"}) {
    NullStream::called.clear();
    TinySpec spec;
    spec.architecture = architecture;
    const TinyFile tiny(spec);
    NullDevice device("null");
    const auto model = load_model(device, tiny.file());
    ASSERT_TRUE(model.ok()) << model.status().message();
    EngineOptions o;
    o.kv.context = 64, o.max_sequences = 2, o.prefill_tokens = 8;
    auto engine = InferenceEngine::create(device, **model, o);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    const auto answers =
        generate(**engine, {request(random_prompt(5, 1), 4), request(random_prompt(20, 2), 3)});
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[0].tokens, std::vector<int32_t>(4, kDrawn));
    EXPECT_EQ(answers[1].tokens, std::vector<int32_t>(3, kDrawn));
    const std::set<std::string> kinds(NullStream::called.begin(), NullStream::called.end());
    for (const char* op : {"embedding", "rms_norm", "linear", "quantize_rows", "rope", "kv_write",
                           "attention_prefill", "attention_decode", "add", "gather_rows", "sample"})
      EXPECT_EQ(kinds.count(op), 1u) << op << " did not run for " << architecture;
    EXPECT_EQ(kinds.count(std::string(architecture) == "llama" ? "silu_mul" : "gelu_mul"), 1u);
    EXPECT_GT(NullStream::synchronized, 0);
    EXPECT_GE((*engine)->plan_bytes(), kWorkspace);
  }
}

TEST_F(NullBackend, a_kernel_that_the_device_lacks_is_declined_by_name_before_anything_runs) {
  const TinyFile tiny({});
  for (const auto& [backend, op] : {std::pair{"void", "embedding"}, {"poor", "quantize_rows"}}) {
    NullDevice device(backend);
    const auto model = load_model(device, tiny.file());
    ASSERT_TRUE(model.ok()) << model.status().message();
    EngineOptions o;
    o.kv.context = 64;
    auto engine = InferenceEngine::create(device, **model, o);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    ASSERT_TRUE((*engine)->submit(request({1, 2, 3}, 2)).ok());
    const auto events = (*engine)->step();
    ASSERT_FALSE(events.ok());
    EXPECT_EQ(events.status().code(), Code::kDeclined);
    EXPECT_NE(events.status().message().find(text(op, " has no ", backend, " kernel")), std::string::npos)
        << events.status().message();
    EXPECT_TRUE(NullStream::called.empty());
  }
}

TEST_F(NullBackend, the_cpu_keeps_its_own_kernels) {
  TinyModel tiny;
  const Answer a = generate(*engine_for(tiny, {}), {request({1, 2, 3}, 4)}).at(0);
  EXPECT_EQ(a.tokens.size(), 4u);
  EXPECT_TRUE(NullStream::called.empty());
}

}  // namespace
}  // namespace ridge
