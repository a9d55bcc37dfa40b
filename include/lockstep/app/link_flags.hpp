// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include <lockstep/app/command.hpp>
#include <lockstep/scaling/fabric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Adds the flags --link, --alpha-us and --beta-gb-s, which describe the link between ranks for predictions.
inline void add_link(Command& command, scaling::Link& link, std::optional<double>& alpha_us,
                     std::optional<double>& beta_gb_s) {
  using scaling::Link;
  command.add("--link", link,
              {{"auto", Link::automatic},
               {"ethernet_10", Link::ethernet_10},
               {"network_100", Link::network_100},
               {"network_400", Link::network_400},
               {"pcie_4", Link::pcie_4},
               {"pcie_5", Link::pcie_5},
               {"nvlink_3", Link::nvlink_3},
               {"nvlink_4", Link::nvlink_4}},
              "Link between ranks in predictions, with its data sheet's bandwidth; auto: 10 Gbit/s Ethernet for CPUs, "
              "PCIe 4.0 for GPUs");
  command.add("--alpha-us", alpha_us, 0, 1e6, "Latency of a message between two ranks, in us; default: the link's");
  command.add("--beta-gb-s", beta_gb_s, 1e-6, 1e6,
              "Bandwidth of a rank, in GB/s sent while as much is received; default: the link's");
}

}}}  // namespace lockstep::app
