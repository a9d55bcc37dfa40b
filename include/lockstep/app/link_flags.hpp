// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include <lockstep/app/command.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/scaling/fabric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

namespace detail {
inline constexpr OptionWord link_words[] = {
    {"auto", scaling::Link::automatic},          {"ethernet_10", scaling::Link::ethernet_10},
    {"network_100", scaling::Link::network_100}, {"network_400", scaling::Link::network_400},
    {"pcie_4", scaling::Link::pcie_4},           {"pcie_5", scaling::Link::pcie_5},
    {"nvlink_3", scaling::Link::nvlink_3},       {"nvlink_4", scaling::Link::nvlink_4}};
}  // namespace detail

/// Describes the link between ranks for predictions.
[[nodiscard]] inline OptionList describe_link(scaling::Link& link, std::optional<double>& alpha_us,
                                              std::optional<double>& beta_gb_s) {
  return {
      "link",
      {{.variable = {link, detail::link_words},
        .flag = {.names = "--link",
                 .help = "Link between ranks in predictions, with its data sheet's bandwidth; auto: 10 Gbit/s "
                         "Ethernet for CPUs, PCIe 4.0 for GPUs"}},
       {.variable = alpha_us,
        .range = {0, 1e6},
        .flag = {.names = "--alpha-us", .help = "Latency of a message between two ranks, in us; default: the link's"}},
       {.variable = beta_gb_s,
        .range = {1e-6, 1e6},
        .flag = {.names = "--beta-gb-s",
                 .help = "Bandwidth of a rank, in GB/s sent while as much is received; default: the link's"}}}};
}

/// Adds the flags --link, --alpha-us and --beta-gb-s, which describe the link between ranks for predictions.
inline void add_link(Command& command, scaling::Link& link, std::optional<double>& alpha_us,
                     std::optional<double>& beta_gb_s) {
  for (auto const& option : describe_link(link, alpha_us, beta_gb_s)) command.add(option);
}

}}}  // namespace lockstep::app
