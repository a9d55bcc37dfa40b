// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/loss/named_loss.hpp>
#include <lockstep/train/trainer/detail/evaluate.hpp>
#include <lockstep/train/trainer/detail/loss_parts.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<std::pair<std::string, double>> mean_loss_parts(
    parallel::AnySession& session, std::vector<std::string> const& names, int devices,
    std::vector<std::string> const& known) {
  std::vector<parallel::LossParts> parts(static_cast<std::size_t>(devices));
  session.read_loss_parts(parts);
  std::vector<double> totals;  // of each device and name: sum, weight, and 1 if the device has the part
  for (auto const& of_device : parts)
    for (auto const& name : names) {
      std::size_t at = 0;
      while (at < of_device.size() && of_device[at].first != name) ++at;
      bool const has = at < of_device.size();
      auto const loss = has ? of_device[at].second : nn::Loss<HostSpace>{};
      totals.push_back(loss.sum);
      totals.push_back(loss.weight);
      totals.push_back(has ? 1 : 0);
    }
  sum_over_shards(session, totals, devices);
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto const sum = totals[3 * i], weight = totals[3 * i + 1];
    if (totals[3 * i + 2] == 0 && std::find(known.begin(), known.end(), names[i]) == known.end()) {
      std::vector<std::string> here;
      for (auto const& part : parts[0]) here.push_back(part.first);
      throw ConfigError("loss_parts: the model's loss of a step has no part \"" + names[i] + "\"; it names " +
                        nn::detail::quoted_names(here) +
                        ". Name the part when the loss is computed, for every batch: nn::named_loss(context, \"" +
                        names[i] + "\", loss)");
    }
    means.emplace_back(names[i], weight == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / weight);
  }
  return means;
}

LOCKSTEP_COLD_INLINE void add_names(std::vector<std::string> const& names, std::vector<std::string>& list) {
  for (auto const& name : names)
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

}}}  // namespace lockstep::train::detail
