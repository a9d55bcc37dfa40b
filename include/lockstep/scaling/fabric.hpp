// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <optional>

#include <lockstep/core/index.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Algorithm of an all-reduce over a network.
enum class AllReduce {
  fastest,  ///< whichever gives the shorter step (default)
  ring,     ///< 2 (ranks - 1) consecutive messages, each of 1 / ranks of the bytes
  tree,     ///< up a binary tree and down again, pipelined
};

/// Kinds of links between ranks. Their bandwidths are those of data sheets, in one direction; transfers reach less.
enum class Link {
  automatic,    ///< ethernet_10 for CPUs, pcie_4 for GPUs (default)
  ethernet_10,  ///< 10 Gbit/s, 1.25 GB/s
  network_100,  ///< 100 Gbit/s, 12.5 GB/s
  network_400,  ///< 400 Gbit/s, 50 GB/s
  pcie_4,       ///< PCIe 4.0 with 16 lanes, 31.5 GB/s
  pcie_5,       ///< PCIe 5.0 with 16 lanes, 63 GB/s
  nvlink_3,     ///< all links of an A100, 300 GB/s
  nvlink_4,     ///< all links of an H100, 450 GB/s
};

/// Cost model of the network. A message of n bytes between any two ranks takes latency_seconds + n seconds_per_byte.
/// All ranks send and receive in parallel.
struct Fabric {
  double latency_seconds = 20e-6;             ///< of a message between two ranks
  double seconds_per_byte = 1 / 1.25e9;       ///< 10 Gbit/s
  AllReduce all_reduce = AllReduce::fastest;  ///< algorithm
  char const* source = "";  ///< for a report: origin of assumed or measured figures; empty: given or default

  /// Returns the model of a link.
  [[nodiscard]] static constexpr Fabric of(Link link) noexcept {
    switch (link) {
      case Link::network_100:
        return {10e-6, 1 / 12.5e9};
      case Link::network_400:
        return {5e-6, 1 / 50e9};
      case Link::pcie_4:
        return {5e-6, 1 / 31.5e9};
      case Link::pcie_5:
        return {5e-6, 1 / 63e9};
      case Link::nvlink_3:
        return {5e-6, 1 / 300e9};
      case Link::nvlink_4:
        return {5e-6, 1 / 450e9};
      case Link::automatic:
      case Link::ethernet_10:
        break;
    }
    return {};
  }
  /// Returns the model of a link with the latency and bandwidth that are given, if any. Without a link or a bandwidth,
  /// ranks on GPUs get the figures of PCIe 4.0, and `source` says so.
  [[nodiscard]] static Fabric of(Link link, bool on_gpus, std::optional<double> message_us,
                                 std::optional<double> gb_per_second) noexcept;
  /// Returns the model that explains an all-reduce measured over a ring of `ranks`, at least 2.
  [[nodiscard]] static Fabric measured(parallel::CollectiveCost const& cost, Index ranks) noexcept;

  /// Returns the cost of an all-reduce over `ranks` by a ring.
  [[nodiscard]] parallel::CollectiveCost ring(Index ranks) const noexcept;
  /// Returns the cost of an all-reduce over `ranks` by a tree.
  [[nodiscard]] parallel::CollectiveCost tree(Index ranks) const noexcept;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/fabric.ipp>
#endif
