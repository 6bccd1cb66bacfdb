#include "engine/kv_pool.h"

#include "base/checked.h"

namespace ridge {

namespace {
constexpr int64_t kAlign = 64;
}  // namespace

Status KvPool::check(const KvOptions& o) {
  for (const DType t : {o.k_type, o.v_type})
    if (t != kF32 && t != kF16 && t != kBF16 && t != kI8)
      return invalid_argument("KV format is ", dtype_name(t), ": use f32, f16, bf16 or i8");
  if (o.page_size < 1 || o.page_size > kMostTokensOfPage)
    return invalid_argument("page_size is ", o.page_size, ": use 1 to ", kMostTokensOfPage);
  if (o.context < 1) return invalid_argument("context is ", o.context, ": use 1 or more");
  if (o.pages < 1 || o.pages > INT32_MAX)  // page tables are 32 bits wide
    return invalid_argument("the KV cache has ", o.pages, " pages: it needs 1 to ", INT32_MAX);
  return {};
}

int64_t KvPool::token_bytes(const std::vector<KvShape>& shapes, const KvOptions& o) {
  int64_t bytes = 0;
  for (const KvShape& s : shapes)
    for (const DType t : {o.k_type, o.v_type})
      bytes += s.kv_heads * (s.head_dim * dtype_block_bytes(t) + (t == kI8 ? 4 : 0));
  return bytes;
}

Result<KvPool> KvPool::create(Device& device, const std::vector<KvShape>& shapes, const KvOptions& o) {
  RIDGE_TRY(check(o));
  KvPool pool;
  int64_t total = 0;
  // Offsets first, then one allocation: what the plan of memory says is what is allocated.
  const auto place = [&](DType type, const Shape& shape) -> Result<Tensor> {
    RIDGE_ASSIGN(const int64_t bytes, tensor_bytes(type, shape));
    Tensor t(reinterpret_cast<void*>(total), type, shape);
    if (!checked_add(total, round_up(bytes, kAlign), &total))
      return resource_exhausted("the KV cache exceeds 2^63 bytes");
    return t;
  };
  for (const KvShape& s : shapes) {
    const Shape page{o.pages, s.kv_heads, o.page_size, s.head_dim}, scale{o.pages, s.kv_heads, o.page_size};
    KvLayer layer;
    RIDGE_ASSIGN(layer.k_pages, place(o.k_type, page));
    RIDGE_ASSIGN(layer.v_pages, place(o.v_type, page));
    if (o.k_type == kI8) {
      RIDGE_ASSIGN(layer.k_scale, place(kF32, scale));
    }
    if (o.v_type == kI8) {
      RIDGE_ASSIGN(layer.v_scale, place(kF32, scale));
    }
    pool.view_.layers.push_back(layer);
  }
  RIDGE_ASSIGN(pool.memory_, device.allocate(total));
  for (KvLayer& layer : pool.view_.layers)
    for (Tensor* t : {&layer.k_pages, &layer.v_pages, &layer.k_scale, &layer.v_scale})
      if (t->rank() > 0) t->data = pool.memory_.begin() + reinterpret_cast<intptr_t>(t->data);
  pool.view_.page_size = o.page_size;
  pool.view_.max_pages = ceil_div(o.context, o.page_size);
  pool.total_ = o.pages;
  pool.free_.reserve(static_cast<size_t>(o.pages));
  pool.take_back_all();
  return pool;
}

Result<int32_t> KvPool::take() {
  if (free_.empty())
    return resource_exhausted("all ", total_, " KV pages of ", view_.page_size, " tokens are in use");
  const int32_t page = free_.back();
  free_.pop_back();
  return page;
}
void KvPool::take_back_all() {
  free_.clear();
  for (int64_t p = total_ - 1; p >= 0; --p) free_.push_back(static_cast<int32_t>(p));
}
void KvPool::give_back(const std::vector<int32_t>& pages) {
  free_.insert(free_.end(), pages.rbegin(), pages.rend());
}

}  // namespace ridge
