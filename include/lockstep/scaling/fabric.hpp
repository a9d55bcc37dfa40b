// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/parallel/collective_cost.hpp>

namespace lockstep::inline LOCKSTEP_ABI::scaling {

/// How ranks sum over a network.
enum class AllReduce {
  fastest,  ///< whichever of the two makes the step shorter (the default)
  ring,     ///< 2 (ranks - 1) messages one after the other, each of 1 / ranks of the bytes
  tree,     ///< up a binary tree and down again, in pieces that follow each other
};

/// What joins ranks: a message of n bytes from one to the next takes message_seconds + n byte_seconds, whichever two
/// they are. All ranks send and receive at the same time.
struct Fabric {
  double message_seconds = 20e-6;
  double byte_seconds = 1 / 1.25e9;  ///< 10 Gbit/s
  AllReduce all_reduce = AllReduce::fastest;

  /// Of an all-reduce over `ranks` by a ring.
  [[nodiscard]] parallel::CollectiveCost ring(Index ranks) const noexcept {
    auto const others = static_cast<double>(ranks - 1);
    return {2 * others * message_seconds, 2 * others / static_cast<double>(ranks) * byte_seconds};
  }
  /// Of one by a tree.
  [[nodiscard]] parallel::CollectiveCost tree(Index ranks) const noexcept {
    auto const levels = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
    return {2 * levels * message_seconds, ranks > 1 ? 2 * byte_seconds : 0};
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::scaling
