// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include <lockstep/core/error.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/nn/loss/named_loss.hpp>
#include <lockstep/train/trainer/detail/loss_parts.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<std::pair<std::string, double>> mean_loss_parts(parallel::AnySession& session,
                                                                                 std::vector<std::string> const& names,
                                                                                 int devices) {
  std::vector<parallel::LossParts> parts(static_cast<std::size_t>(devices));
  session.read_loss_parts(parts);
  std::vector<double> totals;  // sum, weight and number of devices with the part, by name
  for (auto const& name : names) {
    auto const sum = [&](auto const& value) {
      totals.push_back(tree_sum(devices, [&](int device) {
        auto const& all = parts[static_cast<std::size_t>(device)];
        auto const found = std::find_if(all.begin(), all.end(), [&](auto const& part) { return part.first == name; });
        return found == all.end() ? 0.0 : value(found->second);
      }));
    };
    sum([](auto const& loss) { return loss.sum; });
    sum([](auto const& loss) { return loss.weight; });
    sum([](auto const&) { return 1.0; });
  }
  session.all_reduce(totals);
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto const [sum, weight, devices_with] = std::array{totals[3 * i], totals[3 * i + 1], totals[3 * i + 2]};
    if (devices_with == 0) {
      std::vector<std::string> known;
      for (auto const& part : parts[0]) known.push_back(part.first);
      throw ConfigError("loss_parts: the model's loss of a step has no part \"" + names[i] + "\"; it names " +
                        nn::detail::quoted_names(known) +
                        ". Name the part when the loss is computed, for every batch: nn::named_loss(context, \"" +
                        names[i] + "\", loss)");
    }
    means.emplace_back(names[i], weight == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / weight);
  }
  return means;
}

}}}  // namespace lockstep::train::detail
