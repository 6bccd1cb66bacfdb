// Operators by name over the caller's memory.

#include <cmath>
#include <cstring>

#include "capi/small_model.h"
#include "ops/any_operator.h"
#include "tensor/blocks.h"

namespace ridge {
namespace {

/// A ridge_tensor with the memory of its shape and strides.
struct View {
  std::vector<int64_t> shape, strides;
  ridge_tensor t{};
  View(void* data, int code, int bits, std::vector<int64_t> dims, std::vector<int64_t> steps = {})
      : shape(std::move(dims)), strides(std::move(steps)) {
    t.data = data, t.device.device_type = RIDGE_TENSOR_CPU, t.ndim = static_cast<int32_t>(shape.size());
    t.dtype.code = static_cast<uint8_t>(code), t.dtype.bits = static_cast<uint8_t>(bits), t.dtype.lanes = 1;
    t.shape = shape.data(), t.strides = strides.empty() ? nullptr : strides.data();
  }
  View(const View&) = delete;
};
struct Floats : View {
  Floats(float* data, std::vector<int64_t> dims, std::vector<int64_t> steps = {})
      : View(data, RIDGE_TENSOR_FLOAT, 32, std::move(dims), std::move(steps)) {}
};
struct Bytes : View {
  Bytes(void* data, std::vector<int64_t> dims) : View(data, RIDGE_TENSOR_UINT, 8, std::move(dims)) {}
};

struct Aligned {
  explicit Aligned(int64_t bytes) : buffer(Buffer::allocate(std::max<int64_t>(bytes, 1)).take()) {}
  Buffer buffer;
  void* data() const { return buffer.data(); }
};

class CApiOperators : public testing::Test {
 protected:
  void SetUp() override {
    ridge_device_options o = RIDGE_DEVICE_OPTIONS_INIT;
    o.threads = 2;
    ASSERT_EQ(ridge_device_create(&o, &device_), RIDGE_OK) << ridge_error_message();
    ASSERT_EQ(ridge_stream_create(device_, &stream_), RIDGE_OK);
  }
  void TearDown() override {
    for (ridge_call* c : calls_) ridge_call_destroy(c);
    ridge_stream_destroy(stream_);
    ridge_device_destroy(device_);
  }
  ridge_call* call(const char* op) {
    ridge_call* c = nullptr;
    EXPECT_EQ(ridge_call_create(device_, op, &c), RIDGE_OK) << ridge_error_message();
    calls_.push_back(c);
    return c;
  }
  static void set(ridge_call* c, const char* operand, const View& v) {
    EXPECT_EQ(ridge_call_set_operand(c, operand, &v.t), RIDGE_OK) << ridge_error_message();
  }
  /// With the workspace that the call asks for, and none beyond.
  ridge_status run(ridge_call* c) {
    int64_t bytes = 0;
    if (const ridge_status s = ridge_call_workspace(c, &bytes); s != RIDGE_OK) return s;
    const Aligned workspace(bytes);
    return ridge_call_run(c, stream_, workspace.data(), bytes);
  }

  ridge_device* device_ = nullptr;
  ridge_stream* stream_ = nullptr;
  std::vector<ridge_call*> calls_;
};

TEST_F(CApiOperators, the_list_describes_every_operator_as_it_is_registered) {
  ASSERT_EQ(ridge_operator_count(), operators().size());
  ASSERT_GT(ridge_operator_count(), 10u);
  EXPECT_EQ(ridge_operator_name(operators().size()), nullptr);
  for (size_t i = 0; i < operators().size(); ++i) {
    const AnyOperator& op = *operators()[i];
    const char* name = ridge_operator_name(i);
    ASSERT_STREQ(name, op.name());
    ridge_operator_info info = RIDGE_OPERATOR_INFO_INIT;
    ASSERT_EQ(ridge_operator_describe(name, &info), RIDGE_OK);
    ASSERT_EQ(info.operands, op.operands().size());
    ASSERT_EQ(info.params, op.params().size());
    for (size_t k = 0; k < info.operands; ++k) {
      ridge_operand_info o = RIDGE_OPERAND_INFO_INIT;
      ASSERT_EQ(ridge_operator_operand(name, k, &o), RIDGE_OK);
      EXPECT_STREQ(o.name, op.operands()[k].name);
      EXPECT_STREQ(o.dims, op.operands()[k].dims);
      EXPECT_EQ(o.optional != 0, op.operands()[k].optional);
      for (const DType d : op.operands()[k].dtypes) EXPECT_NE(o.dtypes >> static_cast<int>(d) & 1, 0u);
    }
    ridge_operand_info beyond = RIDGE_OPERAND_INFO_INIT;
    EXPECT_EQ(ridge_operator_operand(name, info.operands, &beyond), RIDGE_INVALID_ARGUMENT);
    const char* param = nullptr;
    for (size_t k = 0; k < info.params; ++k) EXPECT_EQ(ridge_operator_param(name, k, &param), RIDGE_OK);
    EXPECT_EQ(ridge_operator_param(name, info.params, &param), RIDGE_INVALID_ARGUMENT);
    EXPECT_TRUE(says("index is " + std::to_string(info.params)));
  }
}

TEST_F(CApiOperators, an_unknown_operator_operand_or_parameter_is_named_with_those_that_there_are) {
  ridge_call* c = nullptr;
  EXPECT_EQ(ridge_call_create(device_, "rms_nrom", &c), RIDGE_NOT_FOUND);
  EXPECT_TRUE(says("'rms_nrom'"));
  EXPECT_TRUE(says("rms_norm"));
  EXPECT_EQ(c, nullptr);
  c = call("rms_norm");
  EXPECT_EQ(ridge_call_set_operand(c, "weight", nullptr), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("'weight'; it has y, x, w"));
  EXPECT_EQ(ridge_call_set_param(c, "eps", 1), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("epsilon"));
}

TEST_F(CApiOperators, rms_norm_runs_over_gapped_rows_and_leaves_the_gaps) {
  float x[2 * 5] = {3, 4, 9, 9, 9, 6, 8, 9, 9, 9}, y[2 * 3] = {7, 7, 7, 7, 7, 7}, w[2] = {1, 2};
  ridge_call* c = call("rms_norm");
  const Floats tx(x, {2, 2}, {5, 1}), ty(y, {2, 2}, {3, 1}), tw(w, {2});
  set(c, "x", tx), set(c, "y", ty), set(c, "w", tw);
  ASSERT_EQ(ridge_call_set_param(c, "epsilon", 0), RIDGE_OK);
  double value = 9;
  ASSERT_EQ(ridge_call_get_param(c, "epsilon", &value), RIDGE_OK);
  EXPECT_EQ(value, 0);
  ASSERT_EQ(run(c), RIDGE_OK) << ridge_error_message();
  const float root = std::sqrt(12.5f);
  for (int r = 0; r < 2; ++r) {
    EXPECT_NEAR(y[3 * r], 3 / root, 1e-6);
    EXPECT_NEAR(y[3 * r + 1], 2 * 4 / root, 1e-6);
    EXPECT_EQ(y[3 * r + 2], 7);
  }
}

TEST_F(CApiOperators, byte_offset_and_empty_tensors_are_taken) {
  float x[4] = {9, 9, 3, 4}, y[2] = {}, w[2] = {1, 1};
  ridge_call* c = call("rms_norm");
  Floats tx(x, {1, 2}), ty(y, {1, 2}), tw(w, {2});
  tx.t.byte_offset = 8;
  set(c, "x", tx), set(c, "y", ty), set(c, "w", tw);
  ASSERT_EQ(run(c), RIDGE_OK) << ridge_error_message();
  EXPECT_NEAR(y[1] / y[0], 4.0 / 3, 1e-6);
  const Floats none(nullptr, {0, 2});
  set(c, "x", none), set(c, "y", none);
  EXPECT_EQ(run(c), RIDGE_OK) << ridge_error_message();
}

TEST_F(CApiOperators, a_tensor_that_cannot_be_is_refused_where_it_is_set) {
  alignas(64) float data[8] = {};
  ridge_call* c = call("rms_norm");
  const auto refused = [&](const ridge_tensor& t, const char* part, ridge_status s = RIDGE_INVALID_ARGUMENT) {
    EXPECT_EQ(ridge_call_set_operand(c, "x", &t), s);
    return says(part);
  };
  Floats t(data, {2, 4});
  t.t.device.device_type = 2;
  EXPECT_TRUE(refused(t.t, "device_type is 2", RIDGE_DECLINED));
  t.t.device.device_type = RIDGE_TENSOR_CPU;
  for (const int32_t rank : {0, 6, -1}) {
    t.t.ndim = rank;
    EXPECT_TRUE(refused(t.t, "ndim is"));
  }
  t.t.ndim = 2, t.t.shape = nullptr;
  EXPECT_TRUE(refused(t.t, "shape is NULL"));
  t.t.shape = t.shape.data(), t.t.dtype.bits = 64;
  EXPECT_TRUE(refused(t.t, "64 bits"));
  t.t.dtype.bits = 32, t.t.dtype.lanes = 2;
  EXPECT_TRUE(refused(t.t, "2 lanes"));
  t.t.dtype.lanes = 1, t.t.data = nullptr;
  EXPECT_TRUE(refused(t.t, "data is NULL with shape [2, 4]"));
  t.t.data = reinterpret_cast<char*>(data) + 2;
  EXPECT_TRUE(refused(t.t, "not aligned to 4"));
  EXPECT_TRUE(refused(Floats(data, {-1, 4}).t, "dim 0 is -1"));
  EXPECT_TRUE(refused(Floats(data, {INT64_MAX, 4}).t, "operand x"));
  EXPECT_TRUE(refused(Floats(data, {2, 4}, {-4, 1}).t, "stride 0 is -4"));
  EXPECT_TRUE(refused(Floats(data, {2, 4}, {INT64_MAX, 1}).t, "beyond 2^63"));
  const Floats repeated(data, {2, 4}, {0, 1});
  EXPECT_EQ(ridge_call_set_operand(c, "y", &repeated.t), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("stride 0 is 0"));
  set(c, "x", repeated);  // reading one row twice is fine
}

TEST_F(CApiOperators, a_call_that_does_not_fit_together_is_refused_before_it_runs) {
  float x[8] = {}, y[8] = {}, w[4] = {};
  int32_t whole[8] = {};
  ridge_call* c = call("rms_norm");
  const Floats tx(x, {2, 4}), ty(y, {2, 4}), short_w(w, {3});
  set(c, "x", tx), set(c, "y", ty);
  int64_t bytes = 0;
  EXPECT_EQ(ridge_call_workspace(c, &bytes), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("operand w is missing"));
  set(c, "w", short_w);
  EXPECT_EQ(ridge_call_run(c, stream_, nullptr, 0), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("[3]"));
  const View ints(whole, RIDGE_TENSOR_INT, 32, {2, 4});
  set(c, "x", ints);
  EXPECT_EQ(ridge_call_run(c, stream_, nullptr, 0), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("x is i32, needs f32, bf16"));
}

TEST_F(CApiOperators, integer_parameters_that_are_none_are_refused) {
  ridge_call* c = call("attention_decode");
  for (const double wrong : {0.5, std::nan(""), HUGE_VAL, 1e300}) {
    EXPECT_EQ(ridge_call_set_param(c, "window", wrong), RIDGE_INVALID_ARGUMENT) << wrong;
    EXPECT_TRUE(says("window is"));
  }
  EXPECT_EQ(ridge_call_set_param(c, "window", 7), RIDGE_OK);
  double value = 0;
  EXPECT_EQ(ridge_call_get_param(c, "window", &value), RIDGE_OK);
  EXPECT_EQ(value, 7);
  c = call("rope");
  EXPECT_EQ(ridge_call_set_param(c, "interleaved", 2), RIDGE_INVALID_ARGUMENT);
  EXPECT_EQ(ridge_call_set_param(c, "interleaved", 1), RIDGE_OK);
}

TEST_F(CApiOperators, a_stream_of_another_device_and_bad_workspace_are_refused) {
  float x[4] = {1, 2, 3, 4}, y[4] = {}, w[4] = {1, 1, 1, 1};
  ridge_call* c = call("rms_norm");
  const Floats tx(x, {1, 4}), ty(y, {1, 4}), tw(w, {4});
  set(c, "x", tx), set(c, "y", ty), set(c, "w", tw);
  ridge_device* other = nullptr;
  ridge_stream* foreign = nullptr;
  ridge_device_options o = RIDGE_DEVICE_OPTIONS_INIT;
  o.threads = 1;
  ASSERT_EQ(ridge_device_create(&o, &other), RIDGE_OK);
  ASSERT_EQ(ridge_stream_create(other, &foreign), RIDGE_OK);
  ridge_device_destroy(other);  // the stream keeps what it needs
  EXPECT_EQ(ridge_call_run(c, foreign, nullptr, 0), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("another device"));
  ridge_stream_destroy(foreign);
  EXPECT_EQ(ridge_call_run(c, nullptr, nullptr, 0), RIDGE_INVALID_ARGUMENT);
  EXPECT_EQ(ridge_call_run(c, stream_, nullptr, -1), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("workspace_bytes is -1"));
  EXPECT_EQ(ridge_call_run(c, stream_, nullptr, 64), RIDGE_INVALID_ARGUMENT);
  const Aligned memory(128);
  EXPECT_EQ(ridge_call_run(c, stream_, static_cast<char*>(memory.data()) + 4, 64), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("4 bytes behind a multiple of 64"));
}

TEST_F(CApiOperators, sample_says_how_much_workspace_it_wants_and_runs_with_no_less) {
  constexpr int64_t kColumns = 5000;
  std::vector<float> logits(2 * kColumns, 0.0f), temperature(2, 0.0f), top_p(2, 1.0f), min_p(2, 0.0f),
      logprob(2);
  logits[7] = 5, logits[kColumns + 4011] = 5;
  std::vector<int32_t> ids(2, -1), status(2, -1), top_k(2, 0);
  std::vector<int64_t> seed(2, 1), position(2, 3);
  const View i(ids.data(), RIDGE_TENSOR_INT, 32, {2}), s(status.data(), RIDGE_TENSOR_INT, 32, {2}),
      k(top_k.data(), RIDGE_TENSOR_INT, 32, {2}), key(seed.data(), RIDGE_TENSOR_INT, 64, {2}),
      at(position.data(), RIDGE_TENSOR_INT, 64, {2});
  const Floats l(logits.data(), {2, kColumns}), p(logprob.data(), {2}), t(temperature.data(), {2}),
      tp(top_p.data(), {2}), mp(min_p.data(), {2});
  ridge_call* c = call("sample");
  set(c, "ids", i), set(c, "status", s), set(c, "logprob", p), set(c, "logits", l), set(c, "temperature", t);
  set(c, "top_k", k), set(c, "top_p", tp), set(c, "min_p", mp), set(c, "seed", key), set(c, "position", at);
  int64_t bytes = 0;
  ASSERT_EQ(ridge_call_workspace(c, &bytes), RIDGE_OK) << ridge_error_message();
  ASSERT_GT(bytes, 0);
  const Aligned workspace(bytes);
  EXPECT_EQ(ridge_call_run(c, stream_, workspace.data(), bytes - 1), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("needs " + std::to_string(bytes)));
  EXPECT_EQ(ids[0], -1);
  ASSERT_EQ(ridge_call_run(c, stream_, workspace.data(), bytes), RIDGE_OK) << ridge_error_message();
  EXPECT_EQ(ids, (std::vector<int32_t>{7, 4011}));
}

class CApiPack : public CApiOperators, public testing::WithParamInterface<ridge_dtype> {};

TEST_P(CApiPack, linear_gives_the_same_bits_from_blocks_and_from_weights_packed_by_it) {
  const auto dtype = static_cast<DType>(GetParam());
  const int64_t out = 19, in = 512, tokens = 3;
  int64_t block = 0, block_bytes = 0;
  ASSERT_EQ(ridge_dtype_block(GetParam(), &block, &block_bytes), RIDGE_OK);
  const int64_t row_bytes = in / block * block_bytes;
  Random random(5);
  std::vector<float> x(static_cast<size_t>(tokens * in)), row(static_cast<size_t>(in));
  for (float& v : x) v = random.uniform(-1, 1);
  std::vector<uint16_t> storage(static_cast<size_t>(out * row_bytes / 2));
  auto* raw = reinterpret_cast<uint8_t*>(storage.data());
  std::vector<double> weights;
  for (int64_t o = 0; o < out; ++o) {
    for (float& v : row) v = random.uniform(-1, 1);
    encode_row(dtype, row.data(), in, raw + o * row_bytes);
    for (int64_t b = 0; b < in / block; ++b) {
      weights.resize(weights.size() + static_cast<size_t>(block));
      decode_block(dtype, raw + o * row_bytes, b, weights.data() + o * in + b * block);
    }
  }
  int64_t packed_bytes = 0;
  ASSERT_EQ(ridge_packed_bytes(device_, "linear", GetParam(), out, in, &packed_bytes), RIDGE_OK)
      << ridge_error_message();
  ASSERT_GT(packed_bytes, 0);
  const Aligned packed(packed_bytes + 64);
  auto* guard = static_cast<unsigned char*>(packed.data()) + packed_bytes;
  std::memset(guard, 0xA5, 64);
  EXPECT_EQ(ridge_pack(device_, "linear", GetParam(), out, in, raw, out * row_bytes, packed.data(),
                       packed_bytes - 1),
            RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("packed_bytes is " + std::to_string(packed_bytes - 1)));
  EXPECT_EQ(ridge_pack(device_, "linear", GetParam(), out, in, raw, out * row_bytes - 2, packed.data(),
                       packed_bytes),
            RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("from_bytes is"));
  ASSERT_EQ(
      ridge_pack(device_, "linear", GetParam(), out, in, raw, out * row_bytes, packed.data(), packed_bytes),
      RIDGE_OK)
      << ridge_error_message();
  for (int i = 0; i < 64; ++i) ASSERT_EQ(guard[i], 0xA5);

  std::vector<float> y(static_cast<size_t>(tokens * out), NAN), z = y;
  const Floats tx(x.data(), {tokens, in}), ty(y.data(), {tokens, out}), tz(z.data(), {tokens, out});
  ridge_call* c = call("linear");
  set(c, "x", tx), set(c, "y", ty);
  ASSERT_EQ(ridge_call_set_packed(c, "w", "linear", GetParam(), out, in, packed.data(), packed_bytes),
            RIDGE_OK)
      << ridge_error_message();
  ASSERT_EQ(run(c), RIDGE_OK) << ridge_error_message();
  const Bytes blocks(raw, {out, row_bytes});
  set(c, "y", tz);
  ASSERT_EQ(ridge_call_set_blocks(c, "w", GetParam(), &blocks.t), RIDGE_OK) << ridge_error_message();
  ASSERT_EQ(run(c), RIDGE_OK) << ridge_error_message();
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t o = 0; o < out; ++o) {
      double wanted = 0, magnitude = 0;
      for (int64_t k = 0; k < in; ++k) {
        const double product = static_cast<double>(x[static_cast<size_t>(t * in + k)]) *
                               weights[static_cast<size_t>(o * in + k)];
        wanted += product, magnitude += std::fabs(product);
      }
      const double bound = static_cast<double>(in + 4) * 0x1p-24 * magnitude;
      EXPECT_NEAR(y[static_cast<size_t>(t * out + o)], wanted, bound);
      EXPECT_NEAR(z[static_cast<size_t>(t * out + o)], wanted, bound);
    }
}
INSTANTIATE_TEST_SUITE_P(EveryBlockType, CApiPack,
                         testing::Values(RIDGE_Q8_0, RIDGE_Q4_0, RIDGE_Q4_1, RIDGE_Q5_0, RIDGE_Q4_K,
                                         RIDGE_Q6_K),
                         [](const auto& i) { return std::string(ridge_dtype_name(i.param)); });

TEST_F(CApiOperators, blocks_and_packed_weights_that_cannot_be_are_refused) {
  alignas(64) uint8_t bytes[1024] = {};
  ridge_call* c = call("linear");
  const auto refused = [](ridge_status s, const char* part) {
    EXPECT_EQ(s, RIDGE_INVALID_ARGUMENT);
    return says(part);
  };
  const Bytes broken(bytes, {2, 35}), fine(bytes, {2, 34}), odd(bytes + 1, {2, 34});
  EXPECT_TRUE(refused(ridge_call_set_blocks(c, "w", RIDGE_Q8_0, &broken.t),
                      "35 bytes, needs whole q8_0 blocks of 34"));
  EXPECT_TRUE(refused(ridge_call_set_blocks(c, "w", RIDGE_F32, &fine.t), "f32 is not block-quantized"));
  EXPECT_TRUE(refused(ridge_call_set_blocks(c, "w", 99, &fine.t), "dtype is 99"));
  EXPECT_TRUE(refused(ridge_call_set_blocks(c, "w", RIDGE_Q8_0, nullptr), "bytes is NULL"));
  EXPECT_TRUE(refused(ridge_call_set_blocks(c, "w", RIDGE_Q8_0, &odd.t), "not aligned to 2"));
  EXPECT_TRUE(refused(ridge_call_set_packed(c, "x", "linear", RIDGE_F32, 1, 1, bytes, 1024), "operand x"));
  EXPECT_TRUE(refused(ridge_call_set_packed(c, "w", "linear", RIDGE_F32, 16, 8, bytes, 511),
                      "packed_bytes is 511, needs 512"));
  EXPECT_TRUE(refused(ridge_call_set_packed(c, "w", "linear", RIDGE_F32, 16, 8, bytes + 4, 512),
                      "packed is 4 bytes behind"));
  EXPECT_TRUE(
      refused(ridge_call_set_packed(c, "w", "linear", RIDGE_F32, 16, 8, nullptr, 512), "packed is NULL"));
  EXPECT_TRUE(refused(ridge_call_set_packed(c, "w", "linear", RIDGE_F32, -1, 8, bytes, 512), "rows is -1"));
  EXPECT_TRUE(refused(ridge_call_set_packed(c, "w", "linear", RIDGE_F32, INT64_MAX, INT64_MAX, bytes, 512),
                      "exceed 2^63"));
  EXPECT_TRUE(refused(ridge_call_set_packed(c, "w", "rms_norm", RIDGE_F32, 16, 8, bytes, 512),
                      "rms_norm does not pack"));
  int64_t n = 0;
  EXPECT_TRUE(refused(ridge_packed_bytes(device_, "linear", RIDGE_Q8_0, 16, 33, &n), "33"));
  EXPECT_EQ(ridge_packed_bytes(device_, "add", RIDGE_F32, 16, 8, &n), RIDGE_OK);
  EXPECT_EQ(n, 0);
}

TEST_F(CApiOperators, the_account_of_a_call_is_hand_computed) {
  std::vector<float> x(3 * 64), w(5 * 64), y(3 * 5);
  ridge_call* c = call("linear");
  const Floats tx(x.data(), {3, 64}), tw(w.data(), {5, 64}), ty(y.data(), {3, 5});
  set(c, "x", tx), set(c, "w", tw), set(c, "y", ty);
  ridge_cost cost = RIDGE_COST_INIT;
  ASSERT_EQ(ridge_call_cost(c, &cost), RIDGE_OK) << ridge_error_message();
  EXPECT_EQ(cost.flops, 2 * 3 * 5 * 64);
  EXPECT_EQ(cost.read_bytes[RIDGE_WEIGHTS], 5 * 64 * 4);
  EXPECT_EQ(cost.read_bytes[RIDGE_ACTIVATIONS], 3 * 64 * 4);
  EXPECT_EQ(cost.written_bytes[RIDGE_ACTIVATIONS], 3 * 5 * 4);
  EXPECT_GE(cost.executed_flops, cost.flops);
  EXPECT_NE(cost.kernel, nullptr);
}

TEST_F(CApiOperators, a_forced_instruction_set_decides_the_kernel_and_an_unknown_one_is_refused) {
  ridge_device_options o = RIDGE_DEVICE_OPTIONS_INIT;
  ridge_device* device = nullptr;
  o.isa = "sse";
  EXPECT_EQ(ridge_device_create(&o, &device), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("sse"));
  o.isa = "scalar", o.threads = -2;
  EXPECT_EQ(ridge_device_create(&o, &device), RIDGE_INVALID_ARGUMENT);
  EXPECT_TRUE(says("threads is -2"));
  o.threads = 1;
  ASSERT_EQ(ridge_device_create(&o, &device), RIDGE_OK);
  ridge_device_destroy(device);
}

}  // namespace
}  // namespace ridge
