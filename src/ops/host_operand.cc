#include "ops/host_operand.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/stop.h"
#include "tensor/blocks.h"

namespace ridge {

namespace {

constexpr int64_t kGuardBytes = 64;
constexpr int64_t kGapElements = 5;
constexpr int32_t kPoisonIndex = 2147480000;

/// NaN for floats, a huge index for indices, 0xA5 elsewhere.
void poison(DType dtype, void* data, int64_t bytes) {
  std::memset(data, 0xA5, static_cast<size_t>(bytes));
  const auto fill = [&](auto value) {
    for (int64_t i = 0; i + static_cast<int64_t>(sizeof value) <= bytes;
         i += static_cast<int64_t>(sizeof value))
      std::memcpy(static_cast<std::byte*>(data) + i, &value, sizeof value);
  };
  if (dtype == kF32) fill(std::numeric_limits<float>::quiet_NaN());
  if (dtype == kF16) fill(uint16_t{0x7e00});
  if (dtype == kBF16) fill(uint16_t{0x7fc0});
  if (dtype == kI32) fill(kPoisonIndex);
  if (dtype == kI64) fill(int64_t{kPoisonIndex});
}

/// Visits the start of every innermost row.
template <class Visit>
void for_each_row(const Tensor& t, const Visit& visit) {
  if (t.elements() == 0) return;
  const int inner = t.rank() - 1;
  std::array<int64_t, kMaxRank> index{};
  for (;;) {
    int64_t at = 0;
    for (int d = 0; d < inner; ++d) at += index[static_cast<size_t>(d)] * t.stride(d);
    visit(at);
    int d = inner - 1;
    while (d >= 0 && ++index[static_cast<size_t>(d)] == t.dim(d)) index[static_cast<size_t>(d--)] = 0;
    if (d < 0) return;
  }
}

}  // namespace

Result<HostOperand> HostOperand::make(DType dtype, const Shape& shape, Layout layout) {
  RIDGE_ASSIGN(int64_t bytes, tensor_bytes(dtype, shape));
  HostOperand out;
  Tensor t(nullptr, dtype, shape);
  if (layout == Layout::kGapped && shape.rank() >= 1) {
    int64_t stride = shape.rank() >= 2 ? shape[shape.rank() - 1] + kGapElements : 1;
    for (int d = shape.rank() - 2; d >= 0; --d)
      t.strides[static_cast<size_t>(d)] = stride, stride *= shape[d];
    if (shape.rank() >= 2) bytes = stride * dtype_block_bytes(dtype);
    out.offset_ = dtype_block_bytes(dtype);
  }
  out.offset_ += kGuardBytes;
  RIDGE_ASSIGN(out.memory_, Buffer::allocate(round_up(bytes, 8) + out.offset_ + kGuardBytes + 64));
  poison(dtype, out.memory_.data(), out.memory_.bytes());
  t.data = out.memory_.begin() + out.offset_;
  out.tensor_ = t;
  return out;
}

Result<HostOperand> HostOperand::make_packed(const PackedLayout& layout, DType dtype, const Shape& shape) {
  HostOperand out;
  out.offset_ = kGuardBytes;
  RIDGE_ASSIGN(out.memory_, Buffer::allocate(layout.bytes(shape[0], shape[1]) + 2 * kGuardBytes));
  poison(kU8, out.memory_.data(), out.memory_.bytes());
  out.tensor_ = Tensor(out.memory_.begin() + out.offset_, dtype, shape);
  out.tensor_.layout = &layout;
  return out;
}

Result<HostOperand> HostOperand::copy() const {
  HostOperand out;
  RIDGE_ASSIGN(out.memory_, Buffer::allocate(memory_.bytes()));
  std::memcpy(out.memory_.data(), memory_.data(), static_cast<size_t>(memory_.bytes()));
  out.offset_ = offset_;
  out.tensor_ = tensor_;
  out.tensor_.data = out.memory_.begin() + offset_;
  return out;
}

void HostOperand::fill(Random& random) {
  if (is_index(tensor_.dtype)) return;
  const int64_t columns = tensor_.rank() > 0 ? tensor_.dim(tensor_.rank() - 1) : 1;
  std::vector<float> values(static_cast<size_t>(columns));
  for_each_row(tensor_, [&](int64_t at) {
    if (stop_requested()) return;  // seconds for a large operand, and whoever asked will not use it
    for (float& v : values) v = random.normal();
    if (is_block_quantized(tensor_.dtype)) {
      const int64_t block = at / dtype_block(tensor_.dtype);
      encode_row(tensor_.dtype, values.data(), columns,
                 tensor_.as<std::byte>() + block * dtype_block_bytes(tensor_.dtype));
      return;
    }
    for (int64_t i = 0; i < columns; ++i) {
      const auto v = values[static_cast<size_t>(i)];
      switch (tensor_.dtype) {
        case kF32:
          tensor_.as<float>()[at + i] = v;
          break;
        case kF16:
          tensor_.as<f16>()[at + i] = to_f16(v);
          break;
        case kBF16:
          tensor_.as<bf16>()[at + i] = to_bf16(v);
          break;
        case kI8:
          tensor_.as<int8_t>()[at + i] = static_cast<int8_t>(random.below(255) - 127);
          break;
        case kBool:
          tensor_.as<uint8_t>()[at + i] = static_cast<uint8_t>(random.below(2));
          break;
        default:
          tensor_.as<uint8_t>()[at + i] = static_cast<uint8_t>(random.below(256));
          break;
      }
    }
  });
}

void HostOperand::make_absolute() {
  if (tensor_.layout != nullptr || is_index(tensor_.dtype) || tensor_.dtype == kU8 || tensor_.dtype == kBool)
    return;
  if (is_block_quantized(tensor_.dtype)) {  // no block holds |values|: f32 instead
    auto plain = make(kF32, tensor_.shape, Layout::kDense).take();
    const int64_t n = tensor_.elements();
    for (int64_t i = 0; i < n; i += dtype_block(tensor_.dtype)) {
      double block[256];
      decode_block(tensor_.dtype, tensor_.data, i / dtype_block(tensor_.dtype), block);
      for (int64_t j = 0; j < dtype_block(tensor_.dtype); ++j)
        plain.tensor_.as<float>()[i + j] = static_cast<float>(std::fabs(block[j]));
    }
    *this = std::move(plain);
    return;
  }
  for_each_row(tensor_, [&](int64_t at) {
    const int64_t columns = tensor_.rank() > 0 ? tensor_.dim(tensor_.rank() - 1) : 1;
    for (int64_t i = at; i < at + columns; ++i) {
      if (tensor_.dtype == kF32) tensor_.as<float>()[i] = std::fabs(tensor_.as<float>()[i]);
      if (tensor_.dtype == kF16) tensor_.as<f16>()[i].bits &= 0x7fff;
      if (tensor_.dtype == kBF16) tensor_.as<bf16>()[i].bits &= 0x7fff;
      if (tensor_.dtype == kI8)
        tensor_.as<int8_t>()[i] = static_cast<int8_t>(std::abs(tensor_.as<int8_t>()[i]));
    }
  });
}

std::string HostOperand::damage(const HostOperand& before) const {
  std::vector<bool> owned(static_cast<size_t>(memory_.bytes()), false);
  const auto own = [&](int64_t first, int64_t bytes) {
    for (int64_t i = first; i < first + bytes; ++i) owned[static_cast<size_t>(offset_ + i)] = true;
  };
  if (tensor_.layout != nullptr || is_block_quantized(tensor_.dtype)) {
    own(0, tensor_.bytes());
  } else {
    const int64_t columns = tensor_.rank() > 0 ? tensor_.dim(tensor_.rank() - 1) : 1,
                  size = dtype_block_bytes(tensor_.dtype);
    for_each_row(tensor_, [&](int64_t at) { own(at * size, columns * size); });
  }
  for (int64_t i = 0; i < memory_.bytes(); ++i)
    if (!owned[static_cast<size_t>(i)] && memory_.begin()[i] != before.memory_.begin()[i])
      return text("byte ", i - offset_, " outside the elements was written");
  return "";
}

bool within(double got, double want, double bound, DType dtype, double* ratio, int roundings) {
  *ratio = 0;
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  // Half a unit in the last place of the output's type, at the reference's exponent.
  const int digits = dtype == kBF16 ? 8 : dtype == kF16 ? 11 : dtype == kF32 ? 24 : 0;
  const int least = dtype == kF16 ? -14 : -126;
  const double size = std::fabs(want) + bound;
  const double half_ulp =
      digits == 0 ? 0 : std::ldexp(1.0, std::max(size > 0 ? std::ilogb(size) : least, least) - digits);
  const double error = std::fabs(got - want);
  const double allowed = bound + roundings * half_ulp;
  if (error == 0) return true;
  *ratio = allowed > 0 ? error / allowed : HUGE_VAL;
  return error <= allowed;
}

Result<DeviceOperand> DeviceOperand::upload(Device& device, const HostOperand& host) {
  DeviceOperand out;
  RIDGE_ASSIGN(out.memory_, device.allocate(host.bytes()));
  RIDGE_TRY(device.upload(out.memory_.data(), host.base(), host.bytes()));
  out.tensor_ = host.tensor();
  out.tensor_.data = out.memory_.begin() + host.offset();
  return out;
}
Status DeviceOperand::download(Device& device, HostOperand* host) const {
  return device.download(host->base(), memory_.data(), host->bytes());
}

}  // namespace ridge
