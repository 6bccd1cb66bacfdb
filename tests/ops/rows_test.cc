// Operators that work row by row: widths that no vector divides, addresses off alignment, rows further apart
// than 31 bits.

#include "ops/add/add.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/cast/cast.h"
#include "ops/embedding/embedding.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/gelu_mul/gelu_mul.h"
#include "ops/kv_write/kv_write.h"
#include "ops/paged_cache.h"
#include "ops/quantize_rows/quantize_rows.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/sample/sample.h"
#include "ops/silu_mul/silu_mul.h"

namespace ridge {
namespace {

using namespace tests;

constexpr int64_t kWidths[] = {1, 2, 3, 7, 15, 16, 17, 46, 576, 2560, 3584, 3586};

/// A row one element off alignment between guards of NaN.
class GuardedRow {
 public:
  GuardedRow(DType dtype, int64_t width, double value)
      : memory_(static_cast<size_t>((width + 34) * 4)), width_(width) {
    all_ = Tensor(memory_.data(), dtype, {width + 34});
    for (int64_t i = 0; i < width + 34; ++i) all_.set(NAN, i);
    row_ = Tensor(memory_.data() + 17 * dtype_block_bytes(dtype), dtype, {1, width});
    for (int64_t i = 0; i < width; ++i) row_.set(value, 0, i);
  }
  const Tensor& row() const { return row_; }
  Tensor vector() const { return Tensor(row_.data, row_.dtype, {width_}); }
  void expect_guards() const {
    for (int64_t i = 0; i < 17; ++i) {
      ASSERT_TRUE(std::isnan(all_.f64(i))) << "element " << i - 17 << " was written";
      ASSERT_TRUE(std::isnan(all_.f64(17 + width_ + i))) << "element " << width_ + i << " was written";
    }
  }

 private:
  std::vector<std::byte> memory_;
  int64_t width_;
  Tensor all_, row_;
};

/// rms_norm of a row of `value`; the residual form takes half of it from each operand.
void expect_signs(Cpu& cpu, DType dtype, int64_t width, double value, bool residual) {
  const GuardedRow x(dtype, width, residual ? value / 2 : value), b(kF32, width, value / 2),
      w(kF32, width, 1), y(dtype, width, NAN), sum(kF32, width, NAN);
  if (residual) {
    AddRmsNormArgs a{sum.row(), y.row(), x.row(), b.row(), w.vector()};
    a.epsilon = 0;
    ASSERT_TRUE(cpu.call(a).ok());
    for (int64_t i = 0; i < width; ++i) ASSERT_EQ(sum.row().f64(0, i), value);
    sum.expect_guards();
  } else {
    RmsNormArgs a{y.row(), x.row(), w.vector()};
    a.epsilon = 0;
    ASSERT_TRUE(cpu.call(a).ok());
  }
  for (int64_t i = 0; i < width; ++i) ASSERT_EQ(y.row().f64(0, i), value > 0 ? 1 : -1) << "element " << i;
  y.expect_guards();
}

TEST(RmsNorm, K23_any_width_off_alignment_gives_the_sign) {
  for (const Isa isa : isas()) {
    Cpu cpu(isa);
    for (const int64_t width : kWidths)
      for (const double value : {2.0, -2.0, 0.25}) {
        SCOPED_TRACE(text(isa_name(isa), ", width ", width, ", x ", value));
        expect_signs(cpu, kF32, width, value, false);
        expect_signs(cpu, kBF16, width, value, false);
        expect_signs(cpu, kF32, width, value, true);
      }
  }
}

TEST(RmsNorm, K23_a_row_of_3_and_4_and_a_row_of_zeros) {
  for (const Isa isa : isas()) {
    Cpu cpu(isa);
    std::vector<float> x = {3, 4, 0, 0}, w(4, 1.0f), y(4, NAN);
    RmsNormArgs a{Tensor(y.data(), {1, 4}), Tensor(x.data(), {1, 4}), Tensor(w.data(), {4})};
    a.epsilon = 0;
    ASSERT_TRUE(cpu.call(a).ok());
    EXPECT_FLOAT_EQ(y[0], 1.2f);
    EXPECT_FLOAT_EQ(y[1], 1.6f);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 0);
    for (const int64_t width : kWidths) {
      const GuardedRow zeros(kF32, width, 0), ones(kF32, width, 1), out(kF32, width, NAN);
      RmsNormArgs b{out.row(), zeros.row(), ones.vector()};
      b.epsilon = 1e-6f;
      ASSERT_TRUE(cpu.call(b).ok());
      for (int64_t i = 0; i < width; ++i) ASSERT_EQ(out.row().f64(0, i), 0);
    }
  }
}

/// Two rows of 64 whose distance is 2^31 + 64 elements; only they cost memory.
class FarRows {
 public:
  FarRows(DType dtype, double first, double second, int64_t columns = 64)
      : memory_(reserve((kFar + 128) * dtype_block_bytes(dtype))),
        rows_(memory_.data(), dtype, {2, columns}) {
    rows_.strides[0] = kFar;
    for (int64_t c = 0; c < columns; ++c) rows_.set(first, 0, c), rows_.set(second, 1, c);
  }
  const Tensor& rows() const { return rows_; }
  void expect(double first, double second, double tolerance = 0) const {
    for (int64_t c = 0; c < rows_.dim(1); ++c) {
      ASSERT_NEAR(rows_.f64(0, c), first, tolerance) << c;
      ASSERT_NEAR(rows_.f64(1, c), second, tolerance) << c;
    }
  }

 private:
  static constexpr int64_t kFar = (int64_t{1} << 31) + 64;
  Buffer memory_;
  Tensor rows_;
};

TEST(Rows, K24_norms_in_every_form_find_rows_further_apart_than_31_bits) {
  std::vector<float> ones(64, 1.0f);
  const Tensor w(ones.data(), {64});
  for (const Isa isa : isas()) {
    Cpu cpu(isa);
    for (const DType dtype : {kF32, kBF16}) {
      const FarRows x(dtype, 2, -4), y(dtype, NAN, NAN);
      RmsNormArgs a{y.rows(), x.rows(), w};
      a.epsilon = 0;
      ASSERT_TRUE(cpu.call(a).ok());
      y.expect(1, -1);
    }
    const FarRows a(kF32, 1, -3), b(kF32, 1, -1), sum(kF32, NAN, NAN), y(kF32, NAN, NAN);
    AddRmsNormArgs residual{sum.rows(), y.rows(), a.rows(), b.rows(), w};
    residual.epsilon = 0;
    ASSERT_TRUE(cpu.call(residual).ok());
    sum.expect(2, -4), y.expect(1, -1);
    const FarRows codes(kI8, 0, 0), scale(kF32, NAN, NAN, 2), x(kF32, 2, -4);
    ASSERT_TRUE(cpu.call(QuantizeRowsArgs{codes.rows(), scale.rows(), x.rows()}).ok());
    codes.expect(127, -127), scale.expect(2.0 / 127, 4.0 / 127, 1e-8);
  }
}

TEST(Rows, K24_other_operators_by_row_find_them_too) {
  for (const Isa isa : isas()) {
    Cpu cpu(isa);
    {
      const FarRows a(kF32, 1, 2), b(kF32, 10, 20), y(kF32, NAN, NAN);
      ASSERT_TRUE(cpu.call(AddArgs{y.rows(), a.rows(), b.rows()}).ok());
      y.expect(11, 22);
      std::vector<int64_t> index = {1, 0};
      ASSERT_TRUE(cpu.call(GatherRowsArgs{y.rows(), b.rows(), Tensor(index.data(), {2})}).ok());
      y.expect(20, 10);
    }
    {
      const FarRows gate(kF32, 0, 30), up(kF32, 3, 2), y(kF32, NAN, NAN);
      ASSERT_TRUE(cpu.call(SiluMulArgs{y.rows(), gate.rows(), up.rows()}).ok());
      y.expect(0, 60, 1e-4);
      ASSERT_TRUE(cpu.call(GeluMulArgs{y.rows(), gate.rows(), up.rows()}).ok());
      y.expect(0, 60, 1e-4);
    }
    {
      const FarRows x(kF32, 1.5, -2), y(kBF16, NAN, NAN);
      ASSERT_TRUE(cpu.call(CastArgs{y.rows(), x.rows()}).ok());
      y.expect(1.5, -2);
    }
    {
      std::vector<float> table(2 * 64, 5.0f);
      std::fill_n(table.begin() + 64, 64, 7.0f);
      std::vector<int64_t> ids = {1, 0};
      const FarRows y(kF32, NAN, NAN);
      ASSERT_TRUE(
          cpu.call(EmbeddingArgs{y.rows(), Tensor(ids.data(), {2}), Tensor(table.data(), {2, 64}), 1.0f})
              .ok());
      y.expect(7, 5);
    }
    {
      // Position 0 turns by nothing; a frequency of pi and position 1 by half a turn.
      const FarRows x(kF32, 3, 4);
      std::vector<float> frequencies(32, 3.14159265f);
      std::vector<int64_t> positions = {0, 1};
      RopeArgs r;
      r.x = Tensor(x.rows().data, kF32, {2, 1, 64});
      r.x.strides[0] = x.rows().stride(0);
      r.positions = Tensor(positions.data(), {2}), r.frequencies = Tensor(frequencies.data(), {32});
      ASSERT_TRUE(cpu.call(r).ok());
      x.expect(3, -4, 1e-5);
    }
  }
}

TEST(Rows, K24_attention_the_cache_and_the_sampler_find_them_as_well) {
  for (const Isa isa : isas()) {
    Cpu cpu(isa);
    {
      // Keys and values of two tokens into one page; then both queries over them: the mean of 2 and 6.
      const FarRows k(kF32, 0, 0), v(kF32, 2, 6), q(kF32, 0, 0), o(kF32, NAN, NAN);
      std::vector<float> k_page(2 * 64, NAN), v_page(2 * 64, NAN), lse(2);
      std::vector<int64_t> slots = {1, 0}, lengths = {2, 2}, query_start = {0, 1, 2};
      std::vector<int32_t> table = {0, 0};
      const auto heads = [](const Tensor& rows) {
        Tensor t(rows.data, rows.dtype, {2, 1, 64});
        t.strides[0] = rows.stride(0);
        return t;
      };
      KvWriteArgs w;
      w.k = heads(k.rows()), w.v = heads(v.rows()), w.slots = Tensor(slots.data(), {2});
      w.k_pages = Tensor(k_page.data(), {1, 1, 2, 64}), w.v_pages = Tensor(v_page.data(), {1, 1, 2, 64});
      ASSERT_TRUE(cpu.call(w).ok());
      EXPECT_EQ(v_page[0], 6);
      EXPECT_EQ(v_page[64], 2);
      const auto attach = [&](PagedAttention& a) {
        a.q = heads(q.rows()), a.o = heads(o.rows()), a.k_pages = w.k_pages, a.v_pages = w.v_pages,
        a.scale = 1;
        a.page_table = Tensor(table.data(), {2, 1}), a.kv_length = Tensor(lengths.data(), {2});
      };
      AttentionDecodeArgs d;
      attach(d);
      ASSERT_TRUE(cpu.call(d).ok());
      o.expect(4, 4);
      const FarRows again(kF32, NAN, NAN);
      AttentionPrefillArgs p;
      attach(p);
      p.o = heads(again.rows()), p.query_start = Tensor(query_start.data(), {3});
      ASSERT_TRUE(cpu.call(p).ok());
      again.expect(4, 4);
    }
    {
      const FarRows logits(kF32, 0, 0);
      logits.rows().set(5, 0, 40), logits.rows().set(5, 1, 41);
      std::vector<float> zero(2), one(2, 1.0f), logprob(2);
      std::vector<int32_t> ids(2), status(2), top_k(2);
      std::vector<int64_t> seed(2);
      SampleArgs s;
      s.ids = Tensor(ids.data(), {2}), s.status = Tensor(status.data(), {2});
      s.logprob = Tensor(logprob.data(), {2}), s.logits = logits.rows();
      s.temperature = Tensor(zero.data(), {2}), s.top_k = Tensor(top_k.data(), {2});
      s.top_p = Tensor(one.data(), {2}), s.min_p = Tensor(zero.data(), {2});
      s.seed = Tensor(seed.data(), {2}), s.position = Tensor(seed.data(), {2});
      ASSERT_TRUE(cpu.call(s).ok());
      EXPECT_EQ(ids, (std::vector<int32_t>{40, 41}));
    }
  }
}

}  // namespace
}  // namespace ridge
