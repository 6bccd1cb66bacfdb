// The comparison that a person uses to find a wrong kernel must itself name the right call; and the logits of
// a given text must be those that the engine samples from.

#include "lab/compare.h"

#include "engine/forced.h"
#include "engine/generate.h"
#include "integration/model_file.h"
#include "ops/kv_write/kv_write.h"
#include "ops/quantize_rows/quantize_rows.h"
#include "ops/registry.h"
#include "ops/rope/rope.h"
#include "ops/silu_mul/silu_mul.h"

namespace ridge {
namespace {

std::unique_ptr<Session> opened(const ModelFile& file, ActivationFormat activations = ActivationFormat::kF32,
                                Isa isa = Isa::none, DType kv = kF32) {
  SessionOptions o;
  o.device.cpu.threads = 1, o.device.cpu.isa = isa;
  o.engine.kv.k_type = o.engine.kv.v_type = kv;
  o.engine.formats.activations = activations;
  auto s = Session::open(file.path(), o);
  EXPECT_TRUE(s.ok()) << s.status().message();
  return s.ok() ? s.take() : nullptr;
}

const std::vector<int32_t> kPrompt = random_prompt(20, 1, 256);

std::string told(const std::optional<JudgedOutput>& o) {
  if (!o) return "nothing";
  const Judgement& j = o->judgement;
  return text(o->label, " ", o->op, " ", j.operand, " ", j.at, " is ", j.value, ", wanted ", j.wanted,
              ", bound ", j.bound);
}

Comparison compared(Session& a, Session& b, std::optional<double> bound = std::nullopt) {
  auto c = compare_sessions(a, b, kPrompt, bound);
  EXPECT_TRUE(c.ok()) << c.status().message();
  return c.ok() ? c.take() : Comparison{};
}

/// While it lives, the scalar kernel of A's operator with this name damages what its call `nth` put out.
template <class A>
class Fault {
 public:
  Fault(const std::string& kernel, int nth, void (*damage)(const A&)) {
    auto& op = static_cast<Registered<A>&>(registered<A>());
    for (const Kernel<A>& k : op.kernel_list())
      if (k.isa == Isa::scalar && k.name == kernel) kernel_ = const_cast<Kernel<A>*>(&k);
    EXPECT_NE(kernel_, nullptr) << kernel;
    right_ = kernel_->run, damage_ = damage, nth_ = nth, calls_ = 0;
    kernel_->run = [](Stream& stream, const A& args) -> Status {
      RIDGE_TRY(right_(stream, args));
      if (calls_++ == nth_) damage_(args);
      return {};
    };
  }
  ~Fault() {
    EXPECT_GT(calls_, nth_) << "the fault never came";
    kernel_->run = right_;
  }

 private:
  Kernel<A>* kernel_ = nullptr;
  static inline Status (*right_)(Stream&, const A&);
  static inline void (*damage_)(const A&);
  static inline int nth_, calls_;
};

TEST(Compare, a_model_differs_from_itself_in_nothing) {
  for (const char* architecture : {"llama", "gemma3"}) {
    TinySpec spec;
    spec.architecture = architecture;
    ModelFile file;
    file.write(spec);
    const auto a = opened(file), b = opened(file);
    const Comparison c = compared(*a, *b, 0);
    EXPECT_GT(c.outputs, 20);
    EXPECT_FALSE(c.too_far) << c.too_far->label;
    for (const Difference& d : c.apart) EXPECT_EQ(d.error, 0) << d.label << " " << d.op;
  }
}

TEST(Compare, every_call_of_either_instruction_set_is_within_its_operators_bound_whatever_the_formats) {
  for (const char* architecture : {"llama", "gemma3"})
    for (const auto& [activations, kv] : {std::pair{ActivationFormat::kF32, kF32},
                                          {ActivationFormat::kInt8, kF16},
                                          {ActivationFormat::kInt8, kI8},
                                          {ActivationFormat::kBf16, kBF16}}) {
      TinySpec spec;
      spec.architecture = architecture;
      ModelFile file;
      file.write(spec);
      const auto a = opened(file, activations, Isa::scalar, kv), b = opened(file, activations, Isa::none, kv);
      const Comparison c = compared(*a, *b);
      for (const JudgedSide* side : {&c.a, &c.b}) {
        EXPECT_FALSE(side->first) << told(side->first);
        EXPECT_GT(side->calls, 50) << "the prompt and a decode step";
        EXPECT_TRUE(side->unjudged.empty()) << side->unjudged.front();
        ASSERT_TRUE(side->worst);
        EXPECT_GT(side->worst->judgement.ratio, 0.01) << "bounds that nothing comes near say nothing";
      }
    }
}

/// In layer 1 of side A alone.
struct Seeded {
  ModelFile file;
  std::unique_ptr<Session> a, b;
  explicit Seeded(ActivationFormat activations, DType kv) {
    file.write({});
    a = opened(file, activations, Isa::scalar, kv), b = opened(file, activations, Isa::none, kv);
  }
  void is_named(const char* op, const char* operand, const std::vector<int64_t>& at) {
    const Comparison c = compared(*a, *b);
    EXPECT_FALSE(c.b.first) << told(c.b.first);
    ASSERT_TRUE(c.a.first);
    EXPECT_EQ(c.a.first->op, op) << told(c.a.first);
    EXPECT_EQ(c.a.first->label.substr(0, 7), "layer 1") << told(c.a.first);
    EXPECT_EQ(c.a.first->judgement.operand, operand);
    EXPECT_EQ(c.a.first->judgement.at, at);
    EXPECT_GT(std::fabs(c.a.first->judgement.value - c.a.first->judgement.wanted),
              c.a.first->judgement.bound);
  }
};

TEST(Compare, one_bit_wrong_in_the_cache_is_kv_writes) {
  Seeded s(ActivationFormat::kF32, kF16);
  const Fault<KvWriteArgs> fault("kv_write_by_token", 1, [](const KvWriteArgs& a) {
    // Token 3 of the first sequence, in page 0.
    const int64_t at = a.k_pages.offset(0, 1, 3, 5);
    a.k_pages.as<f16>()[at].bits ^= 1;
  });
  s.is_named("kv_write", "k_pages", {0, 1, 3, 5});
}

TEST(Compare, a_code_wrong_by_one_or_a_slot_that_nobody_named_in_the_cache_is_kv_writes) {
  Seeded s(ActivationFormat::kF32, kI8);
  {
    const Fault<KvWriteArgs> fault("kv_write_by_token", 1, [](const KvWriteArgs& a) {
      int8_t& code = a.v_pages.as<int8_t>()[a.v_pages.offset(0, 0, 19, 2)];
      code = static_cast<int8_t>(code > 0 ? code - 1 : code + 1);
    });
    s.is_named("kv_write", "v_pages", {0, 0, 19, 2});
  }
  const Fault<KvWriteArgs> stray("kv_write_by_token", 1, [](const KvWriteArgs& a) {
    a.k_scale.as<float>()[a.k_scale.offset(1, 1, 7, 0)] = 3;  // beyond the prompt's 20 tokens
  });
  s.is_named("kv_write", "k_scale", {1, 1, 7});
}

TEST(Compare, a_code_wrong_by_one_is_quantize_rows) {
  Seeded s(ActivationFormat::kInt8, kF32);
  // Four matrices inputs a layer: the first of layer 1.
  const Fault<QuantizeRowsArgs> fault("quantize_rows_by_block", 4, [](const QuantizeRowsArgs& a) {
    int8_t& code = a.q.row<int8_t>(11)[40];
    code = static_cast<int8_t>(code > 0 ? code - 1 : code + 1);
  });
  s.is_named("quantize_rows", "q", {11, 40});
}

TEST(Compare, a_result_off_by_a_few_roundings_is_the_operators_that_computed_it) {
  Seeded s(ActivationFormat::kF32, kF32);
  {
    const Fault<SiluMulArgs> fault("silu_mul_by_row", 1, [](const SiluMulArgs& a) {
      a.y.row<float>(4)[9] *= 1 + 0x1p-17f;  // its bound is some 2^-20
    });
    s.is_named("silu_mul", "y", {4, 9});
  }
  const Fault<RopeArgs> turned("rope_by_token", 2,
                               [](const RopeArgs& a) { a.x.set(a.x.f64(6, 1, 3) + 1e-4, 6, 1, 3); });
  s.is_named("rope", "x", {6, 1, 3});
}

TEST(Compare, what_only_the_two_differ_in_is_found_by_their_distance) {
  ModelFile right, wrong;
  right.write({});
  TinySpec spec;
  spec.edit = [](const std::string& name, std::vector<float>* values) {
    if (name == "blk.1.ffn_up.weight") (*values)[5] += 10;
  };
  wrong.write(spec);
  const auto a = opened(right), b = opened(wrong);
  const Comparison c = compared(*a, *b, 1e-4);
  EXPECT_FALSE(c.a.first || c.b.first) << "each computes its own weights right";
  ASSERT_TRUE(c.too_far);
  EXPECT_EQ(c.too_far->label, "layer 1 up");
  EXPECT_EQ(c.too_far->op, "linear");
  EXPECT_EQ(c.apart.size(), 10u);
}

TEST(Compare, formats_are_told_apart_in_the_cache_and_in_the_products) {
  ModelFile file;
  file.write({});
  const auto exact = opened(file), coarse = opened(file, ActivationFormat::kF32, Isa::none, kI8),
             int8 = opened(file, ActivationFormat::kInt8);
  const Comparison cache = compared(*exact, *coarse, 1e-3);
  ASSERT_TRUE(cache.too_far);
  EXPECT_EQ(cache.too_far->op, "kv_write");
  EXPECT_LT(cache.too_far->error, 1e-2) << "codes times their scales";
  const Comparison products = compared(*exact, *int8, 1e-4);
  ASSERT_TRUE(products.too_far);
  EXPECT_EQ(products.too_far->op, "linear");
  EXPECT_NE(products.too_far->kernel_a, products.too_far->kernel_b);
}

TEST(Compare, a_value_that_is_no_number_is_beyond_any_distance) {
  ModelFile right, wrong;
  right.write({});
  TinySpec spec;
  spec.edit = [](const std::string& name, std::vector<float>* values) {
    if (name == "blk.0.ffn_norm.weight") (*values)[3] = std::nanf("");
  };
  wrong.write(spec);
  const auto a = opened(right), b = opened(wrong);
  const Comparison c = compared(*a, *b, 1e30);
  ASSERT_TRUE(c.too_far);
  EXPECT_EQ(c.too_far->label, "layer 0 mlp norm");
}

TEST(ForcedText, chunks_give_the_logits_that_the_engine_samples_from) {
  for (const char* architecture : {"llama", "gemma3"}) {
    TinySpec spec;
    spec.architecture = architecture;
    TinyModel tiny(spec);
    const auto ids = random_prompt(40, 3);
    EngineOptions o;
    o.kv.context = 64;
    const Answer sampled = generate(*engine_for(tiny, o), {request(ids, 1)}).at(0);
    auto forced = ForcedText::create(*tiny.device, *tiny.model, {o.formats, o.kv.k_type, 64, {}});
    ASSERT_TRUE(forced.ok()) << forced.status().message();
    ASSERT_TRUE(forced->feed({ids.begin(), ids.begin() + 25}).ok());
    std::set<std::string> seen;
    const auto logits =
        forced->feed({ids.begin() + 25, ids.end()}, [&](const PlannedCall& c) { seen.insert(c.call.label); });
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    EXPECT_EQ(seen.count("layer 1 down"), 1u);
    ASSERT_EQ(logits->dim(0), 15);
    const auto* last = logits->row<float>(14);
    EXPECT_EQ(std::memcmp(last, sampled.logits[0].data(), sampled.logits[0].size() * 4), 0);
  }
}

TEST(ForcedText, what_cannot_be_fed_is_refused_with_its_value) {
  TinyModel tiny;
  auto forced = ForcedText::create(*tiny.device, *tiny.model, {{}, kF16, 64, {}});
  ASSERT_TRUE(forced.ok());
  const auto refused = [&](const std::vector<int32_t>& ids, const char* says) {
    const auto logits = forced->feed(ids);
    ASSERT_FALSE(logits.ok()) << says;
    EXPECT_EQ(logits.status().code(), Code::kInvalidArgument);
    EXPECT_NE(logits.status().message().find(says), std::string::npos) << logits.status().message();
  };
  refused({}, "no tokens");
  refused(random_prompt(65, 1), "65 tokens after 0 exceed the context of 64");
  refused({300}, "token 300");
  EXPECT_FALSE(ForcedText::create(*tiny.device, *tiny.model, {{}, kF16, 0, {}}).ok());
}

}  // namespace
}  // namespace ridge
