// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/comm/shared_memory/detail/symmetric_heap.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

class SharedMemoryRank;

/// Memory of one rank, and the communicators that work in it.
struct RankHeap {
  explicit RankHeap(std::size_t bytes) : allocator(bytes) {}

  SymmetricHeap allocator;
  std::vector<SharedMemoryRank*> communicators;
  std::vector<Index>
      abandoned_addresses;  // addresses of operations that were incomplete when their communicator was destroyed
};

}}}  // namespace lockstep::comm::detail
