// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/free_list.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

LOCKSTEP_INLINE std::byte* FreeList::take(std::size_t bytes) noexcept {
  bytes = Scratch<>::aligned_size(bytes);
  auto best = parts_.end();
  for (auto part = first(); part != parts_.end(); ++part)
    if (part->bytes >= bytes && (best == parts_.end() || part->bytes < best->bytes)) best = part;
  if (best == parts_.end()) return nullptr;
  auto* const data = best->data;
  best->data += bytes;
  best->bytes -= bytes;
  if (best->bytes == 0) parts_.erase(best);
  return data;
}

LOCKSTEP_INLINE void FreeList::give(std::byte* data, std::size_t bytes, std::size_t chunk) {
  bytes = Scratch<>::aligned_size(bytes);
  if (bytes == 0) return;
  auto next = first();
  while (next != parts_.end() && (next->chunk < chunk || (next->chunk == chunk && next->data < data))) ++next;
  if (next != parts_.end() && next->chunk == chunk && data + bytes == next->data) {
    bytes += next->bytes;
    next = parts_.erase(next);
  }
  if (next != first()) {
    auto& before = *(next - 1);
    if (before.chunk == chunk && before.data + before.bytes == data) {
      before.bytes += bytes;
      return;
    }
  }
  parts_.insert(next, {data, bytes, chunk});
}

LOCKSTEP_INLINE void FreeList::end_scope(std::size_t outer) noexcept {
  parts_.erase(first(), parts_.end());
  hidden_ = outer;
}

LOCKSTEP_INLINE void FreeList::clear() noexcept {
  parts_.clear();
  hidden_ = 0;
}

LOCKSTEP_INLINE std::vector<FreeList::Part>::iterator FreeList::first() noexcept {
  return parts_.begin() + static_cast<std::ptrdiff_t>(hidden_);
}

}}}  // namespace lockstep::memory
