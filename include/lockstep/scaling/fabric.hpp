// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/parallel/collective_cost.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Algorithm of an all-reduce over a network.
enum class AllReduce {
  fastest,  ///< whichever gives the shorter step (default)
  ring,     ///< 2 (ranks - 1) consecutive messages, each of 1 / ranks of the bytes
  tree,     ///< up a binary tree and down again, pipelined
};

/// Cost model of the network. A message of n bytes between any two ranks takes message_seconds + n byte_seconds. All
/// ranks send and receive in parallel.
struct Fabric {
  double message_seconds = 20e-6;
  double byte_seconds = 1 / 1.25e9;  ///< 10 Gbit/s
  AllReduce all_reduce = AllReduce::fastest;

  /// Returns the cost of an all-reduce over `ranks` by a ring.
  [[nodiscard]] parallel::CollectiveCost ring(Index ranks) const noexcept {
    auto const others = static_cast<double>(ranks - 1);
    return {2 * others * message_seconds, 2 * others / static_cast<double>(ranks) * byte_seconds};
  }
  /// Returns the cost of an all-reduce over `ranks` by a tree.
  [[nodiscard]] parallel::CollectiveCost tree(Index ranks) const noexcept {
    auto const levels = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
    return {2 * levels * message_seconds, ranks > 1 ? 2 * byte_seconds : 0};
  }
};

}}}  // namespace lockstep::scaling
