// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/comm/detail/symmetric_heap.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

class SharedMemoryRank;

/// The memory of one rank, and who works in it.
struct RankHeap {
  explicit RankHeap(std::size_t bytes) : places(bytes) {}

  SymmetricHeap places;
  std::vector<SharedMemoryRank*> communicators;
  std::vector<Index> given_up;  // where pieces lie that had not completed when their communicator ended
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
