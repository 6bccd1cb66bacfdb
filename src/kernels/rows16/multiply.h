#pragma once
// y = x wᵀ + bias + residual with w in rows16: how the work is cut, whatever the arithmetic.
//
// Tokens go in groups of up to kGroup; a group's activations are first copied so that what one step along k
// needs of all its tokens lies together (no copy for a group of one). Few tokens: each thread walks its own
// tiles of 16 rows, and for each tile all groups. Many: each thread walks all tiles for its own groups, whose
// activations its own cache holds before, between and after the operators of a layer, and threads meet only
// for the groups that they cannot share out evenly. Either way a tile comes from memory once a chunk and from
// L2 for every later group, and its codes are unpacked once for the 16 tokens of a group. A row and token's
// sum runs over k in order in one lane, whatever the group, the tile or the thread: results depend on neither
// M nor the thread count.

#include <algorithm>

#include "kernels/rows16/group_order.h"
#include "kernels/rows16/panels.h"
#include "runtime/cpu/cpu_device.h"

namespace ridge::RIDGE_ISA::rows16 {

#if defined(RIDGE_ISA_avx512)
inline constexpr int kGroup = 16;  // 16 sums, 8 code vectors and scales fill the 32 registers
inline constexpr int kTiles = 4;   // at a time for one token
#elif defined(RIDGE_ISA_avx2)
inline constexpr int kGroup = 4;
inline constexpr int kTiles = 2;
#else
inline constexpr int kGroup = 4;
inline constexpr int kTiles = 1;
#endif

/// Calls body(width) with the narrowest group that `live` tokens fit in.
template <class K, class Body>
inline void with_width(int64_t live, const Body& body) {
  if (live == 1) return body(std::integral_constant<int, 1>{});
  if constexpr (kGroup == 16) {
    if (live > (K::kManyWidths ? 8 : 4)) return body(std::integral_constant<int, 16>{});
    if constexpr (K::kManyWidths) {
      if (live > 4) return body(std::integral_constant<int, 8>{});
      if (live == 2) return body(std::integral_constant<int, 2>{});
    }
  }
  body(std::integral_constant<int, 4>{});
}

/// Tokens that are multiplied for `tokens` of them: the last group's width may be more than what is left.
template <class K>
int64_t executed_tokens(int64_t tokens) {
  int64_t executed = tokens / kGroup * kGroup;
  if (tokens > executed) with_width<K>(tokens - executed, [&](auto width) { executed += width; });
  return executed;
}

struct Product {
  Tensor y;         // [tokens, rows] f32
  Tensor w;         // [rows, columns], packed
  Tensor bias;      // [rows] f32, or absent
  Tensor residual;  // [tokens, rows] f32, or absent; may be y
  int64_t tokens() const { return y.dim(0); }
  int64_t rows() const { return w.dim(0); }
  int64_t columns() const { return w.dim(1); }
};

// A kernel K of the arithmetic has
//   steps()                                   parts that packing is cut into along k
//   pack<T>(token, live, first, last, to)     copies steps [first, last) of a group of width T
//   run<T, R>(tile, tile_bytes, group, token, sums)   R tiles times a group
//   packs_one_token()                         else a group of width 1 is not packed: run reads the operands
//   bytes_per_token()                         of a packed group
//   kManyWidths                               false where each width is much code
//   kOpsPerByte                               multiply-adds, twice, that take as long as reading a byte

inline int64_t groups_of(int64_t tokens) {
  return (tokens + kGroup - 1) / kGroup;
}
/// Groups whose activations are packed at a time, of `groups` that a thread walks: as many as half of a usual
/// L2 holds, in chunks of like size.
inline int64_t chunk_groups(int64_t groups, int64_t bytes_per_token) {
  const int64_t fit = std::max<int64_t>(2, (512 << 10) / std::max<int64_t>(bytes_per_token * kGroup, 1));
  const int64_t chunks = (groups + fit - 1) / fit;
  return (groups + chunks - 1) / std::max<int64_t>(chunks, 1);
}
template <class K>
int64_t workspace_bytes(const K& k, int64_t tokens) {
  if (tokens <= 1 && !k.packs_one_token()) return 0;
  return groups_of(tokens) * kGroup * k.bytes_per_token();
}

template <int T, int R>
RIDGE_FLATTEN inline void finish(const Product& p, const F32 (&sums)[R][T], int64_t token, int64_t live,
                                 int64_t tile) {
  simd::unrolled<R>([&](auto r) {
    const int64_t row = (tile + r) * kRows;
    const int lanes = static_cast<int>(std::min(kRows, p.rows() - row));
    const F32 bias = p.bias ? simd::load(p.bias.as<float>() + row, lanes) : simd::zero();
    simd::unrolled<T>([&](auto t) {
      if (t >= live) return;
      F32 sum = sums[r][t] + bias;
      if (p.residual) sum = sum + simd::load(p.residual.row<float>(token + t) + row, lanes);
      simd::store(p.y.row<float>(token + t) + row, sum, lanes);
    });
  });
}

template <int T, int R, class K>
inline void multiply_tiles(const K& k, const Product& p, const uint8_t* group, int64_t token, int64_t live,
                           int64_t tile) {
  const int64_t bytes = tile_bytes(p.w.dtype, p.columns());
  F32 sums[R][T], result[R][T];
  simd::unrolled<R>([&](auto r) { simd::unrolled<T>([&](auto t) { sums[r][t] = simd::zero(); }); });
  k.template run<T, R>(p.w.as<uint8_t>() + tile * bytes, bytes, group, token, sums);
  // A copy, because GCC keeps an array whose address goes anywhere up to date in memory: a store per sum and
  // step.
  simd::unrolled<R>([&](auto r) { simd::unrolled<T>([&](auto t) { result[r][t] = sums[r][t]; }); });
  finish<T, R>(p, result, token, live, tile);
}

/// One group times tiles [first, last). Few tokens: several tiles at a time, because one stream of reads does
/// not fill the memory's bandwidth.
template <int T, class K>
inline void multiply_group(const K& k, const Product& p, const uint8_t* group, int64_t token, int64_t live,
                           int64_t first, int64_t last) {
  constexpr int R = T == 1 ? kTiles : T == 2 ? kTiles / 2 : 1;
  int64_t tile = first;
  for (; tile + R <= last; tile += R) multiply_tiles<T, R>(k, p, group, token, live, tile);
  if constexpr (R > 1)
    for (; tile < last; ++tile) multiply_tiles<T, 1>(k, p, group, token, live, tile);
}

/// Groups of tokens, packed one after the other at `packed`.
template <class K>
class Groups {
 public:
  Groups(const K& k, const Product& p, uint8_t* packed)
      : k_(k), p_(p), packed_(packed), packs_(p.tokens() > 1 || k.packs_one_token()) {}
  bool packs() const { return packs_; }

  /// Part `part` of `parts` of packing groups [first, last).
  void pack(int64_t first, int64_t last, int part, int parts) const {
    if (!packs_) return;
    const int64_t items = (last - first) * k_.steps(), end = items * (part + 1) / parts;
    for (int64_t i = items * part / parts; i < end;) {
      const int64_t g = first + i / k_.steps(), step = i % k_.steps();
      const int64_t last_step = std::min(k_.steps(), step + end - i);
      with_width<K>(live(g), [&](auto width) {
        if (width > 1 || k_.packs_one_token())
          k_.template pack<width>(token(g), live(g), step, last_step, group(g));
      });
      i += last_step - step;
    }
  }
  void multiply(int64_t g, int64_t first_tile, int64_t last_tile) const {
    with_width<K>(live(g), [&](auto width) {
      multiply_group<width>(k_, p_, group(g), token(g), live(g), first_tile, last_tile);
    });
  }

 private:
  int64_t token(int64_t g) const { return g * kGroup; }
  int64_t live(int64_t g) const { return std::min<int64_t>(kGroup, p_.tokens() - g * kGroup); }
  uint8_t* group(int64_t g) const { return packed_ + g * kGroup * k_.bytes_per_token(); }

  const K& k_;
  const Product& p_;
  uint8_t* packed_;
  bool packs_;
};

/// A thread's share of the rows of groups [first, last). Narrow matrices are cut along tokens too, so that
/// every thread has work.
template <class K>
void multiply_rows(const Groups<K>& groups, int64_t first, int64_t last, int64_t all_tiles, int thread,
                   int threads) {
  const int64_t count = last - first, wanted = (4 * threads + all_tiles - 1) / all_tiles;
  const int64_t parts = std::min(count, all_tiles >= 4 * threads ? 1 : wanted), items = parts * all_tiles;
  const int64_t begin = items * thread / threads, end = items * (thread + 1) / threads;
  if (count == 1) return groups.multiply(first, begin, end);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t part = i / all_tiles, tile = i % all_tiles;
    for_groups_from_both_ends(first + count * part / parts, first + count * (part + 1) / parts,
                              [&](int64_t g) { groups.multiply(g, tile, tile + 1); });
  }
}

/// Groups from which on a thread takes tokens of its own: by then reading all weights is little beside the
/// products.
inline constexpr int64_t kOwnGroups = 4;

template <class K>
Status multiply(CpuStream& stream, const Product& p, const K& k) {
  const int64_t tokens = p.tokens(), all_tiles = tiles(p.rows());
  if (tokens == 0 || all_tiles == 0) return {};
  const double flops = 1 + 2.0 * static_cast<double>(tokens) * static_cast<double>(p.rows() * p.columns());
  const int threads = static_cast<int>(std::min<int64_t>(
      all_tiles * tokens,
      stream.threads_for(std::max(static_cast<double>(p.w.bytes()), flops / K::kOpsPerByte))));
  const Groups<K> groups(k, p, static_cast<uint8_t*>(stream.workspace()));
  const int64_t all_groups = groups_of(tokens);
  const int64_t own = all_groups / threads >= kOwnGroups ? all_groups / threads : 0;
  const int64_t shared = threads * own;  // the first group of those that threads share
  const auto walk = [&](int64_t first, int64_t last, const auto& body) {
    const int64_t step = chunk_groups(last - first, k.bytes_per_token());
    for (int64_t at = first; at < last; at += step) body(at, std::min(last, at + step));
  };
  if (own > 0 || groups.packs())
    stream.team().run(threads, [&](int thread) {
      walk(thread * own, (thread + 1) * own, [&](int64_t first, int64_t last) {
        groups.pack(first, last, 0, 1);
        multiply_rows(groups, first, last, all_tiles, 0, 1);
      });
      groups.pack(shared, all_groups, thread, threads);
    });
  if (shared < all_groups)
    stream.team().run(threads, [&](int thread) {
      walk(shared, all_groups, [&](int64_t first, int64_t last) {
        multiply_rows(groups, first, last, all_tiles, thread, threads);
      });
    });
  return {};
}

}  // namespace ridge::RIDGE_ISA::rows16
