#pragma once
// One PTX instruction a function; inline assembly appears in this file alone. Addresses into shared memory
// are the 32-bit ones of shared_address(). Source: the PTX ISA; the instruction is named at each function.

#include <cstdint>

namespace ridge::device::ptx {

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

/// 16 bytes that nobody writes during the kernel and nobody reads twice (ld.global.nc.L1::no_allocate).
__device__ __forceinline__ uint4 load_once(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

/// load_once that asks the L2 cache for the whole 256 bytes around `p` (ld.global...L2::256B).
__device__ __forceinline__ uint4 load_once_l2_256(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

/// 16 bytes past the L1 cache: data of another block, published by an acquire (ld.global.cg).
__device__ __forceinline__ float4 load_published(const void* p) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

// Copies global -> shared by the threads (cp.async)
// ---------------------------------------------------------------

/// Copies `bytes` (0 or 16) of `global`, which may be any valid address when 0, and zeroes the rest of 16.
__device__ __forceinline__ void copy_async_16(uint32_t shared, const void* global, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
               : "memory");
}
/// copy_async_16 that asks the L2 cache for the whole 256 bytes around it: for pieces of rows.
__device__ __forceinline__ void copy_async_16_l2_256(uint32_t shared, const void* global, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most kPending of this thread's groups are in flight.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Copies global -> shared by the copy engine (cp.async.bulk), completing on an mbarrier
// ---------------------------

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes barrier_init visible to the copy engine and to the cluster.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// True once the phase with this parity is over; may block for a short time before it says no.
__device__ __forceinline__ bool barrier_try_wait(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}
/// `bytes`: a multiple of 16; both addresses aligned to 16.
__device__ __forceinline__ void copy_bulk(uint32_t shared, const void* global, uint32_t bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
      "l"(global), "r"(bytes), "r"(barrier)
      : "memory");
}

/// The copy engine fetches the tensor map soon (prefetch.tensormap).
__device__ __forceinline__ void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/// The box of a two-dimensional tensor map at (column, row), its whole bytes counted on `barrier`; what lies
/// outside the tensor becomes 0.
__device__ __forceinline__ void copy_box(uint32_t shared, const void* map, int32_t column, int32_t row,
                                         uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(shared),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

/// copy_box of a four-dimensional map.
__device__ __forceinline__ void copy_box(uint32_t shared, const void* map, const int32_t (&at)[4],
                                         uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4, "
      "%5}], [%6];" ::"r"(shared),
      "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(barrier)
      : "memory");
}
/// copy_box of a five-dimensional map.
__device__ __forceinline__ void copy_box(uint32_t shared, const void* map, const int32_t (&at)[5],
                                         uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
      "%4, "
      "%5, %6}], [%7];" ::"r"(shared),
      "l"(map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]), "r"(barrier)
      : "memory");
}

// Matrix instructions
// ----------------------------------------------------------------------------------------------

/// Four 8 x 8 tiles of 16-bit elements; lanes 8i .. 8i + 7 give the row addresses of tile i.
__device__ __forceinline__ void load_matrix_x4(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void load_matrix_x4_transposed(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                  uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                 uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Before the first wgmma, and after registers that it uses were written.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Has `v` in its register here: what the compiler may not move across, so that it leaves the registers of
/// wgmma alone between a fence and a wait.
__device__ __forceinline__ void keep_here(float& v) {
  asm volatile("" : "+f"(v)::"memory");
}
__device__ __forceinline__ void keep_here(uint32_t& v) {
  asm volatile("" : "+r"(v)::"memory");
}
/// Makes shared memory written by this thread's ordinary and cp.async stores visible to wgmma and the copy
/// engine.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Order between launches, blocks and clusters
// ------------------------------------------------------------------------

/// Returns once the launches before this one have finished and their writes are visible.
__device__ __forceinline__ void grid_dependency_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
/// Has `value` worked out before what follows in order of volatile instructions, a wait say: a branch on it
/// that does nothing.
__device__ __forceinline__ void complete_before(uint32_t value) {
  asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0x9e3779b9; @p nanosleep.u32 0; }" ::"r"(value)
               : "memory");
}
/// Lets the next launch start its blocks where there is room.
__device__ __forceinline__ void grid_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Gives registers back, down to kMost a thread, or waits for as many: by a whole warpgroup (setmaxnreg).
template <int kMost>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kMost));
}
template <int kMost>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kMost));
}

/// A barrier of the first `threads` threads of a block to come to it, whole warps; `id` 1 … 15, 0 being
/// __syncthreads().
__device__ __forceinline__ void sync_some(uint32_t id, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// sync_some that says whether `value` was true in any of them.
__device__ __forceinline__ bool sync_some_any(uint32_t id, uint32_t threads, bool value) {
  uint32_t any;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %3, 0; bar.red.or.pred q, %1, %2, p; selp.u32 %0, 1, 0, q; }"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"(uint32_t{value})
      : "memory");
  return any != 0;
}

/// Adds, with this thread's earlier writes released and later reads acquired at the scope of the GPU.
__device__ __forceinline__ uint32_t atomic_add_ordered(uint32_t* p, uint32_t v) {
  uint32_t old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// The address, in the cluster's window, of `shared` in block `rank` of this cluster.
__device__ __forceinline__ uint32_t cluster_address(uint32_t shared, uint32_t rank) {
  uint32_t a;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(shared), "r"(rank));
  return a;
}
__device__ __forceinline__ float4 load_cluster(uint32_t address) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ float load_cluster_float(uint32_t address) {
  float v;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(address) : "memory");
  return v;
}

/// barrier_try_wait for what other blocks of the cluster store.
__device__ __forceinline__ bool barrier_try_wait_cluster(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, "
      "0, "
      "p; }"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}
/// Stores 16 bytes in a block of the cluster, counted on a barrier of that block; both by cluster_address.
__device__ __forceinline__ void store_async_16(uint32_t address, float a, float b, float c, float d,
                                               uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          address),
      "f"(a), "f"(b), "f"(c), "f"(d), "r"(barrier)
      : "memory");
}

// Clocks and scalar functions
// ------------------------------------------------------------------------------------------

/// Nanoseconds; ticks in steps of 32 ns on an H200.
__device__ __forceinline__ uint64_t global_timer() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
/// 2^x to about 2 ulp; 2^-inf is 0 (ex2.approx.ftz).
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace ridge::device::ptx
