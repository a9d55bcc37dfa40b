// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/fabric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE Fabric Fabric::of(Link link, bool on_gpus, std::optional<double> message_us,
                                  std::optional<double> gb_per_second) noexcept {
  bool const assumes = on_gpus && link == Link::automatic;
  auto fabric = of(assumes ? Link::pcie_4 : link);
  if (assumes && !gb_per_second)
    fabric.source =
        "the figures of the link between GPUs are assumed, as of PCIe 4.0 with 16 lanes; for others, give "
        "--link nvlink_4, for example, or --beta-gb-s";
  if (message_us) fabric.latency_seconds = *message_us * 1e-6;
  if (gb_per_second) fabric.seconds_per_byte = 1e-9 / *gb_per_second;
  return fabric;
}

LOCKSTEP_INLINE Fabric Fabric::measured(parallel::CollectiveCost const& cost, Index ranks) noexcept {
  auto const others = static_cast<double>(ranks - 1), n = static_cast<double>(ranks);
  return {cost.latency_seconds / (2 * others), cost.seconds_per_byte * n / (2 * others), AllReduce::fastest,
          "the figures are those of the all-reduce measured above; more ranks, or other hosts, may have another link"};
}

LOCKSTEP_INLINE parallel::CollectiveCost Fabric::ring(Index ranks) const noexcept {
  auto const others = static_cast<double>(ranks - 1);
  return {2 * others * latency_seconds, 2 * others / static_cast<double>(ranks) * seconds_per_byte};
}

LOCKSTEP_INLINE parallel::CollectiveCost Fabric::tree(Index ranks) const noexcept {
  auto const levels = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
  return {2 * levels * latency_seconds, ranks > 1 ? 2 * seconds_per_byte : 0};
}

}}}  // namespace lockstep::scaling
