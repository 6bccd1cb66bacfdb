#include <cmath>

#include "ops/operator_call.h"
#include "ops/rope/rope.h"
#include "ops/rope/rope_frequencies.h"

namespace ridge {
namespace {

using tests::Cpu;

std::vector<float> table_of(const RopeConfig& c) {
  auto table = rope_frequencies(c);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? table->frequencies : std::vector<float>{};
}
RopeConfig of_type(const char* type, int64_t rotary_dim, double base = 10000) {
  RopeConfig c;
  c.type = type, c.rotary_dim = rotary_dim, c.base = base;
  return c;
}
RopeConfig llama3(int64_t rotary_dim, double factor) {
  RopeConfig c = of_type("llama3", rotary_dim, 5e5);
  c.factor = factor, c.original = 8192;
  return c;
}
#define EXPECT_REL(value, want) EXPECT_NEAR(value, want, std::fabs(want) * 5e-7)

TEST(Rope, K25_rotates_the_first_rotary_dim_elements_in_either_layout_and_no_other) {
  auto frequencies = table_of(of_type("default", 64));
  for (const Isa isa : tests::isas())
    for (const bool interleaved : {false, true}) {
      std::vector<float> x(128, 1.0f);
      std::vector<int32_t> positions = {1};
      RopeArgs a;
      a.x = Tensor(x.data(), {1, 1, 128}), a.positions = Tensor(positions.data(), {1});
      a.frequencies = Tensor(frequencies.data(), {32}), a.interleaved = interleaved;
      ASSERT_TRUE(Cpu(isa).call(a).ok());
      EXPECT_NEAR(x[0], -0.301169f, 1e-6);
      EXPECT_NEAR(x[interleaved ? 1 : 32], 1.381773f, 1e-6);
      for (size_t i = 64; i < 128; ++i) EXPECT_EQ(x[i], 1.0f) << i;
    }
}

TEST(Rope, K26_honours_positions_of_64_bits_at_any_size) {
  std::vector<float> frequencies = {1.0f};
  const std::vector<int64_t> where = {7, 9, (int64_t{1} << 40) + 1, -3};
  for (const Isa isa : tests::isas()) {
    std::vector<float> x(8);
    for (size_t i = 0; i < 8; i += 2) x[i] = 1, x[i + 1] = 0;
    std::vector<int64_t> positions = where;
    RopeArgs a;
    a.x = Tensor(x.data(), {4, 1, 2}), a.positions = Tensor(positions.data(), {4});
    a.frequencies = Tensor(frequencies.data(), {1});
    ASSERT_TRUE(Cpu(isa).call(a).ok());
    for (size_t t = 0; t < 4; ++t) {
      const auto angle = static_cast<long double>(where[t]);
      // 2^40 positions times 2^-65 of a turn: 2^-22 of a radian at most.
      EXPECT_NEAR(x[2 * t], static_cast<double>(std::cos(angle)), 2.5e-7) << where[t];
      EXPECT_NEAR(x[2 * t + 1], static_cast<double>(std::sin(angle)), 2.5e-7) << where[t];
    }
  }
}

TEST(Rope, K27_turns_at_position_60000_with_six_right_digits) {
  for (const bool scaled : {true, false}) {
    auto f = table_of(scaled ? llama3(128, 8) : of_type("default", 128, 5e5));
    for (const Isa isa : tests::isas()) {
      std::vector<float> x(128, 0.0f);
      x[32] = 1;
      std::vector<int32_t> positions = {60000};
      RopeArgs a;
      a.x = Tensor(x.data(), {1, 1, 128}), a.positions = Tensor(positions.data(), {1});
      a.frequencies = Tensor(f.data(), {64});
      ASSERT_TRUE(Cpu(isa).call(a).ok());
      EXPECT_NEAR(x[32], scaled ? 0.997201 : -0.999556, 1e-6);
    }
  }
}

TEST(Rope, refuses_more_pairs_than_the_head_holds_and_frequencies_that_are_not_finite) {
  std::vector<float> x(4, 1.0f), frequencies = {1, 1, 1};
  std::vector<int32_t> positions = {1};
  RopeArgs a;
  a.x = Tensor(x.data(), {1, 1, 4}), a.positions = Tensor(positions.data(), {1});
  a.frequencies = Tensor(frequencies.data(), {3});
  Status s = Cpu().call(a);
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_NE(s.message().find("3 pairs"), std::string::npos) << s.message();
  a.frequencies = Tensor(frequencies.data(), {2});
  frequencies[1] = INFINITY;
  s = Cpu().call(a);
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_NE(s.message().find("frequencies[1] is inf"), std::string::npos) << s.message();
  for (const float v : x) EXPECT_EQ(v, 1.0f);
}

TEST(RopeFrequencies, K27_llama3_scales_long_wavelengths_and_blends_between) {
  const auto f = table_of(llama3(128, 8));
  EXPECT_REL(f[28], 3.211446e-3);
  EXPECT_REL(f[29], 2.166571e-3);
  EXPECT_REL(f[32], 5.248462e-4);
  EXPECT_REL(f[34], 1.785078e-4);
  EXPECT_REL(f[35], 9.556212e-5);
  EXPECT_REL(f[63], 3.068926e-7);
  const auto g = table_of(llama3(64, 32));
  EXPECT_REL(g[14], 3.211446e-3);
  EXPECT_REL(g[15], 1.290548e-3);
  EXPECT_REL(g[17], 9.708288e-5);
  EXPECT_REL(g[18], 1.946164e-5);
}

TEST(RopeFrequencies, linear_divides_every_frequency) {
  RopeConfig c = of_type("linear", 4);
  c.factor = 4;
  const auto f = table_of(c);
  EXPECT_REL(f[0], 0.25);
  EXPECT_REL(f[1], 0.0025);
}

TEST(RopeFrequencies, dynamic_grows_the_base_once_the_sequence_exceeds_the_context) {
  RopeConfig c = of_type("dynamic", 4);
  c.factor = 2, c.context = 2048, c.sequence = 2048;
  EXPECT_REL(table_of(c)[1], 0.01);
  c.sequence = 4096;  // base 10000 * (2 * 2 - 1)^(4 / 2) = 90000
  EXPECT_REL(table_of(c)[1], 1.0 / 300);
  EXPECT_REL(table_of(c)[0], 1.0);
}

TEST(RopeFrequencies, yarn_ramps_between_unscaled_and_interpolated_pairs) {
  RopeConfig c = of_type("yarn", 64);
  c.factor = 16, c.original = 4096;
  // 64 ln(4096 / (2 pi 32)) / (2 ln 10000) = 10.47 and, for one turn, 22.51: the ramp runs from 10 to 23.
  auto table = rope_frequencies(c);
  ASSERT_TRUE(table.ok());
  EXPECT_REL(table->frequencies[10], 5.6234133e-2);
  EXPECT_REL(table->frequencies[16], 5.6730769e-3);  // 0.01 (7 / 13) + 0.01 / 16 (6 / 13)
  EXPECT_REL(table->frequencies[23], 8.3345090e-5);
  EXPECT_REL(table->magnitude, 1.2772589);  // 0.1 ln 16 + 1
  c.mscale = 1, c.mscale_all_dim = 1;
  EXPECT_REL(rope_frequencies(c)->magnitude, 1.0);
  c.attention_factor = 1.5;
  EXPECT_REL(rope_frequencies(c)->magnitude, 1.5);
}

TEST(RopeFrequencies, longrope_takes_its_divisors_by_length) {
  RopeConfig c = of_type("longrope", 4);
  c.original = 4096, c.context = 131072, c.sequence = 4096, c.short_factor = {1, 2}, c.long_factor = {4, 8};
  auto table = rope_frequencies(c);
  ASSERT_TRUE(table.ok());
  EXPECT_REL(table->frequencies[1], 0.005);
  EXPECT_REL(table->magnitude, 1.1902381);  // sqrt(1 + 5 / 12)
  c.sequence = 4097;
  EXPECT_REL(table_of(c)[0], 0.25);
  EXPECT_REL(table_of(c)[1], 0.00125);
  c.long_factor = {4};
  const auto bad = rope_frequencies(c);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("long_factor has 1"), std::string::npos) << bad.status().message();
}

TEST(RopeFrequencies, K27_an_unknown_type_is_an_error_that_names_it) {
  const auto table = rope_frequencies(of_type("spiral", 64));
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), Code::kInvalidArgument);
  EXPECT_NE(table.status().message().find("spiral"), std::string::npos) << table.status().message();
}

TEST(RopeFrequencies, refuse_numbers_that_a_type_cannot_use) {
  const auto refused = [](const RopeConfig& c) { return !rope_frequencies(c).ok(); };
  EXPECT_TRUE(refused(of_type("default", 0)));
  EXPECT_TRUE(refused(of_type("default", 63)));
  EXPECT_TRUE(refused(of_type("default", 64, 0)));
  EXPECT_TRUE(refused(of_type("default", 64, NAN)));
  EXPECT_TRUE(refused(of_type("llama3", 64)));  // no original
  EXPECT_TRUE(refused(of_type("yarn", 64)));
  EXPECT_TRUE(refused(of_type("dynamic", 64)));
  RopeConfig c = of_type("linear", 64);
  c.factor = 0;
  EXPECT_TRUE(refused(c));
}

TEST(RopeFrequencies, hash_follows_the_table_and_not_its_spelling) {
  const auto hash = [](const RopeConfig& c) { return rope_frequencies(c)->hash(); };
  RopeConfig c = of_type("linear", 64);
  EXPECT_EQ(hash(c), hash(of_type("default", 64)));
  c.factor = 2;
  EXPECT_NE(hash(c), hash(of_type("default", 64)));
  EXPECT_NE(hash(of_type("default", 64)), hash(of_type("default", 128)));
  RopeConfig y = of_type("yarn", 64);
  y.factor = 16, y.original = 4096;
  const uint64_t plain = hash(y);
  y.attention_factor = 1.0;
  EXPECT_NE(hash(y), plain);
}

}  // namespace
}  // namespace ridge
