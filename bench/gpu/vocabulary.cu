// The device vocabulary, one check each: what a wrapper does, on values that a wrong one would change.

#include <cmath>
#include <type_traits>

#include "device/convert.cuh"
#include "device/launch.cuh"
#include "device/mma.cuh"
#include "device/reduce.cuh"
#include "device/tensor_map.cuh"
#include "device/wgmma.cuh"
#include "harness.h"

namespace ridge::bench {

namespace {

namespace ptx = device::ptx;

__global__ void try_loads(const uint4* in, uint32_t* out) {
  const uint4 a = ptx::load_once(in + threadIdx.x), b = ptx::load_once_l2_256(in + threadIdx.x);
  const float4 c = ptx::load_published(in + threadIdx.x);
  out[threadIdx.x] = a.x + b.y + __float_as_uint(c.z) + a.w;
}

__global__ void try_copies(const uint4* in, uint32_t* out) {
  __shared__ __align__(128) uint4 by_threads[32], by_engine[32];
  __shared__ __align__(8) uint64_t barrier;
  const uint32_t at = ptx::shared_address(&barrier);
  if (threadIdx.x == 0) ptx::barrier_init(at, 1), ptx::barrier_init_fence();
  __syncthreads();
  ptx::copy_async_16(ptx::shared_address(&by_threads[threadIdx.x]), in + threadIdx.x,
                     threadIdx.x & 1 ? 16 : 0);
  ptx::copy_async_commit();
  if (threadIdx.x == 0) {
    ptx::barrier_expect(at, sizeof by_engine);
    ptx::copy_bulk(ptx::shared_address(by_engine), in, sizeof by_engine, at);
  }
  ptx::copy_async_wait<0>();
  while (!ptx::barrier_try_wait(at, 0)) {
  }
  __syncthreads();
  const uint4 a = by_threads[threadIdx.x ^ 1], b = by_engine[threadIdx.x ^ 3];
  out[threadIdx.x] = a.x * 3 + b.y;
}

/// d = a · bᵀ of 16 x 16 and 8 x 16 through ldmatrix, and of b transposed on the way.
template <class T>
__global__ void try_mma(const T* a, const T* b, float* d) {
  __shared__ __align__(16) T sa[16][16], sb[8][16], st[16][8];
  for (int i = threadIdx.x; i < 256; i += 32) sa[i / 16][i % 16] = a[i];
  for (int i = threadIdx.x; i < 128; i += 32) sb[i / 16][i % 16] = b[i], st[i % 16][i / 16] = b[i];
  __syncthreads();
  const int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
  uint32_t fa[4], fb[4], ft[4];
  ptx::load_matrix_x4(fa, ptx::shared_address(&sa[(lane & 7) + (lane >> 3 & 1) * 8][(lane >> 4) * 8]));
  ptx::load_matrix_x4(fb, ptx::shared_address(&sb[lane & 7][(lane >> 3 & 1) * 8]));
  ptx::load_matrix_x4_transposed(ft, ptx::shared_address(&st[lane & 15][0]));
  float x[4] = {}, y[4] = {};
  device::mma<T>(x, fa, fb[0], fb[1]);
  device::mma<T>(y, fa, ft[0], ft[1]);
  for (int j = 0; j < 4; ++j) {
    const int at = (g + (j >> 1) * 8) * 8 + t * 2 + (j & 1);
    d[at] = x[j], d[128 + at] = y[j];
  }
}

/// d = a · bᵀ of 64 x 64 and 32 x 64, both boxes from row 8 of their matrices on, the last 4 of b outside. b
/// also through a map of five dimensions.
template <class T>
__global__ void try_boxes(const __grid_constant__ device::BoxMap a, const __grid_constant__ device::BoxMap b,
                          const __grid_constant__ device::BoxMap b5, float* d) {
  __shared__ __align__(1024) unsigned char sa[8192], sb[4096], sc[4096];
  __shared__ uint64_t barrier;
  const uint32_t full = ptx::shared_address(&barrier);
  if (threadIdx.x == 0) {
    ptx::prefetch_tensor_map(a.address());
    ptx::barrier_init(full, 1), ptx::barrier_init_fence();
    ptx::barrier_expect(full, sizeof sa + sizeof sb + sizeof sc);
    const int32_t at[5] = {0, 8, 0, 0, 0};
    ptx::copy_box(ptx::shared_address(sa), a.address(), 0, 8, full);
    ptx::copy_box(ptx::shared_address(sb), b.address(), 0, 8, full);
    ptx::copy_box(ptx::shared_address(sc), b5.address(), at, full);
  }
  __syncthreads();
  while (!ptx::barrier_try_wait(full, 0)) {
  }
  float sum[2][16] = {};
  for (auto& v : sum[0]) ptx::keep_here(v);
  for (auto& v : sum[1]) ptx::keep_here(v);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint64_t left = device::matrix_descriptor(ptx::shared_address(sa) + k * 32);
    device::wgmma_m64n32k16<T>(sum[0], left, device::matrix_descriptor(ptx::shared_address(sb) + k * 32));
    device::wgmma_m64n32k16<T>(sum[1], left, device::matrix_descriptor(ptx::shared_address(sc) + k * 32));
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  for (auto& v : sum[0]) ptx::keep_here(v);
  for (auto& v : sum[1]) ptx::keep_here(v);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int i = 0; i < 16; ++i) {
    const int row = warp * 16 + (lane >> 2) + (i >> 1 & 1) * 8, column = i / 4 * 8 + (lane & 3) * 2 + (i & 1);
    d[row * 32 + column] = sum[0][i], d[2048 + row * 32 + column] = sum[1][i];
  }
}

/// Warps 0 and 1 meet without the others, then all do.
__global__ void try_some(uint32_t* out) {
  __shared__ uint32_t word;
  if (threadIdx.x == 0) word = 7;
  if (threadIdx.x < 64) ptx::sync_some(1, 64);
  if (threadIdx.x == 63) word += 4;
  __syncthreads();
  if (threadIdx.x == 0) *out = word;
}

__global__ void try_reduce(float* out) {
  __shared__ float scratch[32];
  const float sum = device::block_reduce<device::Sum>(static_cast<float>(threadIdx.x), scratch);
  __syncthreads();
  const float top = device::block_reduce<device::Max>(-static_cast<float>(threadIdx.x ^ 37), scratch);
  const float quad = device::warp_reduce<device::Sum, 4>(static_cast<float>(threadIdx.x));
  if (threadIdx.x == 41) out[0] = sum, out[1] = top, out[2] = quad;
}

template <class T>
__global__ void try_convert(const float* in, float* out) {
  float v[device::kVector<T>], w[device::kVector<T>];
  for (int i = 0; i < device::kVector<T>; ++i) v[i] = in[threadIdx.x * device::kVector<T> + i];
  device::unpack<T>(device::pack<T>(v), w);
  for (int i = 0; i < device::kVector<T>; ++i) {
    const float one = device::to_float(device::from_float<T>(v[i]));
    out[threadIdx.x * device::kVector<T> + i] = one == w[i] || (isnan(one) && isnan(w[i])) ? one : -12345.0f;
  }
}

__global__ void try_cluster(float* out) {
  __shared__ __align__(16) float mine[4];
  if (threadIdx.x < 4) mine[threadIdx.x] = static_cast<float>(10 * ptx::cluster_rank() + threadIdx.x);
  ptx::cluster_arrive(), ptx::cluster_wait();
  const uint32_t other = (ptx::cluster_rank() + 1) % 4;
  const float4 v = ptx::load_cluster(ptx::cluster_address(ptx::shared_address(mine), other));
  if (threadIdx.x == 0) out[blockIdx.x] = v.x + v.w;
  ptx::cluster_arrive(), ptx::cluster_wait();
}

/// A chain of dependent launches: every launch adds 1 to all elements after its wait.
__global__ void try_chain(device::Upstream upstream, device::Fresh<uint32_t> data, int count) {
  upstream.release_next();
  const auto waited = upstream.wait();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    data.after(waited)[i] += 1;
}

__global__ void try_arrivals(uint32_t* counter, uint32_t* last) {
  __syncthreads();
  if (threadIdx.x == 0 && ptx::atomic_add_ordered(counter, 1) + 1 == gridDim.x) *last = blockIdx.x + 1;
}

__global__ void try_clock(uint64_t* out) {
  out[0] = ptx::global_timer();
  float v = ptx::exp2_approx(-static_cast<float>(threadIdx.x));
  for (int i = 0; i < 4000; ++i) v = v * 0.999f + 1e-9f;
  out[2] = __float_as_uint(v);
  out[1] = ptx::global_timer();
}

template <class T>
std::vector<T> host_of(const DeviceBlock& block, size_t count) {
  must(cudaDeviceSynchronize(), "vocabulary");
  std::vector<T> out(count);
  must(cudaMemcpy(out.data(), block.data, count * sizeof(T), cudaMemcpyDeviceToHost), "download");
  return out;
}

template <class T>
void check_mma(Session& session, const char* name) {
  DeviceBlock a(512), b(256), d(1024);
  fill_field(a.as<T>(), 256, 1), fill_field(b.as<T>(), 128, 2);
  try_mma<T><<<1, 32>>>(a.as<T>(), b.as<T>(), d.as<float>());
  const auto ha = host_of<T>(a, 256), hb = host_of<T>(b, 128);
  const auto hd = host_of<float>(d, 256);
  double worst = 0;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      double sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += static_cast<double>(to_f32(ha[static_cast<size_t>(i * 16 + k)])) *
               to_f32(hb[static_cast<size_t>(j * 16 + k)]);
      worst = std::fmax(worst, std::fmax(std::fabs(hd[static_cast<size_t>(i * 8 + j)] - sum),
                                         std::fabs(hd[static_cast<size_t>(128 + i * 8 + j)] - sum)));
    }
  session.check(worst < 1e-5, std::string("ldmatrix, ldmatrix transposed and mma m16n8k16 multiply, ") + name,
                worst, 1e-5);
}

template <class T>
void check_boxes(Session& session, const char* name) {
  constexpr int kRows = 72, kLast = 36, kStride = 80;
  DeviceBlock a(kRows * kStride * 2), b(kRows * kStride * 2), d(16384);
  fill_field(a.as<T>(), kRows * kStride, 1), fill_field(b.as<T>(), kRows * kStride, 2);
  device::BoxMap map_a, map_b, map_five;
  must(device::make_box_map(&map_a.map, a.as<T>(), kRows, 64, kStride, 64));
  must(device::make_box_map(&map_b.map, b.as<T>(), kLast, 64, kStride, 32));
  must(device::make_map<T, 5>(&map_five.map, b.as<T>(), {64, kLast, 1, 1, 1}, {kStride, 64, kStride, kStride},
                              {64, 32, 1, 1, 1}, device::BoxFetch::kAsIs));
  try_boxes<T><<<1, 128>>>(map_a, map_b, map_five, d.as<float>());
  const auto ha = host_of<T>(a, kRows * kStride), hb = host_of<T>(b, kRows * kStride);
  const auto hd = host_of<float>(d, 4096);
  double worst = 0;
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 32; ++j) {
      double sum = 0;
      for (int k = 0; k < 64 && j + 8 < kLast; ++k)
        sum += static_cast<double>(to_f32(ha[static_cast<size_t>((i + 8) * kStride + k)])) *
               to_f32(hb[static_cast<size_t>((j + 8) * kStride + k)]);
      for (const int at : {i * 32 + j, 2048 + i * 32 + j})
        worst = std::fmax(worst, std::fabs(hd[static_cast<size_t>(at)] - sum));
    }
  session.check(worst < 1e-4, std::string("boxes of tensor maps are operands of wgmma m64n32k16, ") + name,
                worst, 1e-4);
}

template <class T>
void check_convert(Session& session, const char* name) {
  std::vector<float> in;
  for (int i = 0; i < 512; ++i)
    in.push_back(field(static_cast<uint64_t>(i), 9) * std::exp2(static_cast<float>(i % 40 - 20)));
  in[0] = 0, in[1] = -0.0f, in[2] = INFINITY, in[3] = -INFINITY, in[4] = NAN, in[5] = 65504, in[6] = 65520,
  in[7] = 3.4e38f, in[8] = 1e-8f;
  DeviceBlock a(2048), b(2048);
  must(cudaMemcpy(a.data, in.data(), 2048, cudaMemcpyHostToDevice), "upload");
  constexpr int kThreads = 512 / device::kVector<T>;
  try_convert<T><<<1, kThreads>>>(a.as<float>(), b.as<float>());
  const auto out = host_of<float>(b, 512);
  double wrong = 0;
  for (size_t i = 0; i < 512; ++i) {
    float expect = in[i];
    if constexpr (kDTypeOf<T> == kBF16) expect = to_f32(to_bf16(in[i]));
    if constexpr (kDTypeOf<T> == kF16) expect = to_f32(to_f16(in[i]));
    wrong += !(out[i] == expect || (std::isnan(out[i]) && std::isnan(expect)));
  }
  session.check(wrong == 0, std::string("pack, unpack and conversion round as the host does, ") + name, wrong,
                0);
}

/// d[64, 64] = a[64, 128] b[64, 128]^T of one warpgroup, bytes.
template <class Sum>
__global__ __launch_bounds__(128) void try_wgmma_bytes(const uint4* a, const uint4* b, Sum* d) {
  __shared__ __align__(1024) unsigned char tiles[2 * 8192];
  for (int i = threadIdx.x; i < 512; i += 128) {
    const uint32_t at = device::swizzle_128(i / 8, i % 8);
    *reinterpret_cast<uint4*>(tiles + at) = a[i], *reinterpret_cast<uint4*>(tiles + 8192 + at) = b[i];
  }
  ptx::fence_proxy_async();
  __syncthreads();
  const uint32_t shared = ptx::shared_address(tiles);
  Sum sums[32] = {};
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint64_t left = device::matrix_descriptor(shared + k * 32),
                   right = device::matrix_descriptor(shared + 8192 + k * 32);
    if constexpr (std::is_same_v<Sum, float>)
      ptx::wgmma_m64n64k32_e4m3(sums, left, right);
    else
      ptx::wgmma_m64n64k32_s8(sums, left, right);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < 32; ++i) d[(row + (i >> 1 & 1) * 8) * 64 + (i >> 2) * 8 + column + (i & 1)] = sums[i];
}

/// Every sum is a whole number that both types hold exactly.
template <class Sum>
void check_wgmma_bytes(Session& session, const char* name) {
  constexpr bool kFp8 = std::is_same_v<Sum, float>;
  constexpr uint8_t kFp8Bits[8] = {0x00, 0x38, 0x40, 0x44, 0x48, 0xb8, 0xc0, 0xc4};
  constexpr int kFp8Values[8] = {0, 1, 2, 3, 4, -1, -2, -3};
  std::vector<uint8_t> bytes(2 * 8192);
  std::vector<int> values(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint32_t x = static_cast<uint32_t>(i * 2654435761u) >> 13;
    bytes[i] = kFp8 ? kFp8Bits[x & 7] : static_cast<uint8_t>(x);
    values[i] = kFp8 ? kFp8Values[x & 7] : static_cast<int8_t>(x);
  }
  DeviceBlock in(2 * 8192), out(64 * 64 * 4);
  must(cudaMemcpy(in.data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "upload");
  try_wgmma_bytes<Sum><<<1, 128>>>(in.as<uint4>(), in.as<uint4>() + 512, out.as<Sum>());
  const auto got = host_of<Sum>(out, 64 * 64);
  double wrong = 0;
  for (size_t m = 0; m < 64; ++m)
    for (size_t n = 0; n < 64; ++n) {
      int64_t want = 0;
      for (size_t k = 0; k < 128; ++k) want += values[m * 128 + k] * values[8192 + n * 128 + k];
      wrong += got[m * 64 + n] != static_cast<Sum>(want);
    }
  session.check(wrong == 0, std::string("wgmma on bytes, ") + name, wrong, 0);
}

}  // namespace

void check_vocabulary(Session& session) {
  DeviceBlock in(1024), out(4096);
  std::vector<uint32_t> words(256);
  for (uint32_t i = 0; i < 256; ++i) words[i] = i * i + 7;
  must(cudaMemcpy(in.data, words.data(), 1024, cudaMemcpyHostToDevice), "upload");
  double wrong = 0;
  try_loads<<<1, 32>>>(in.as<uint4>(), out.as<uint32_t>());
  auto got = host_of<uint32_t>(out, 32);
  for (uint32_t i = 0; i < 32; ++i)
    wrong += got[i] != words[4 * i] + words[4 * i + 1] + words[4 * i + 2] + words[4 * i + 3];
  session.check(wrong == 0, "16-byte loads return their bytes", wrong, 0);
  try_copies<<<1, 32>>>(in.as<uint4>(), out.as<uint32_t>());
  got = host_of<uint32_t>(out, 32), wrong = 0;
  for (uint32_t i = 0; i < 32; ++i)
    wrong += got[i] != ((i ^ 1) & 1 ? words[4 * (i ^ 1)] * 3 : 0) + words[4 * (i ^ 3) + 1];
  session.check(wrong == 0, "cp.async copies or zeroes, cp.async.bulk completes its mbarrier", wrong, 0);
  check_mma<bf16>(session, "bf16"), check_mma<f16>(session, "f16");
  check_wgmma_bytes<float>(session, "e4m3"), check_wgmma_bytes<int32_t>(session, "s8");
  check_boxes<bf16>(session, "bf16"), check_boxes<f16>(session, "f16");
  try_some<<<1, 128>>>(out.as<uint32_t>());
  got = host_of<uint32_t>(out, 1);
  session.check(got[0] == 11, "some warps of a block meet without the others", got[0], 11);
  check_convert<float>(session, "f32"), check_convert<bf16>(session, "bf16"),
      check_convert<f16>(session, "f16");
  try_reduce<<<1, 256>>>(out.as<float>());
  const auto sums = host_of<float>(out, 3);
  session.check(sums[0] == 255 * 128 && sums[1] == 0 && sums[2] == 40 + 41 + 42 + 43,
                "block and warp reductions", sums[0], 255 * 128);
  device::LaunchShape shape;
  shape.grid.x = 8, shape.block.x = 32, shape.cluster = 4;
  must(device::launch(nullptr, shape, "try_cluster", try_cluster, out.as<float>()));
  const auto ranks = host_of<float>(out, 8);
  wrong = 0;
  for (int i = 0; i < 8; ++i)
    wrong += ranks[static_cast<size_t>(i)] != static_cast<float>(20 * ((i + 1) % 4) + 3);
  session.check(wrong == 0, "a block reads the shared memory of its neighbour in the cluster", wrong, 0);

  constexpr int kCount = 1 << 20, kLaunches = 200;
  DeviceBlock data(4 * kCount);
  fill_bytes(data.data, data.bytes, 0);
  must(cudaDeviceSynchronize(), "fill");
  shape = {}, shape.grid.x = 264, shape.block.x = 256;
  for (int i = 0; i < kLaunches; ++i)
    must(device::launch_dependent(session.stream(), shape, "try_chain", try_chain,
                                  device::Fresh<uint32_t>(data.as<uint32_t>()), kCount));
  const auto chain = host_of<uint32_t>(data, kCount);
  wrong = 0;
  for (const uint32_t v : chain) wrong += v != kLaunches;
  session.check(wrong == 0, "200 dependent launches see each other's writes after the wait", wrong, 0);

  fill_bytes(out.data, 64, 0);
  must(cudaDeviceSynchronize(), "fill");
  try_arrivals<<<1000, 64>>>(out.as<uint32_t>(), out.as<uint32_t>() + 1);
  got = host_of<uint32_t>(out, 2);
  session.check(got[0] == 1000 && got[1] > 0, "one block of a grid arrives last", got[0], 1000);
  try_clock<<<1, 1>>>(out.as<uint64_t>());
  const auto times = host_of<uint64_t>(out, 2);
  const double ns = static_cast<double>(times[1] - times[0]);
  session.check(ns > 1000 && ns < 1e6, "globaltimer counts nanoseconds", ns, 1e6);
}

}  // namespace ridge::bench
