// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/classes/class_balance.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE ClassBalance::ClassBalance(std::span<std::int32_t const> labels, std::vector<std::string> names)
    : names_(std::move(names)), counts_(names_.size()) {
  for (auto const& label : labels) {
    if (label < 0 || label >= std::ssize(names_))
      throw DataError("ClassBalance: sample " + std::to_string(&label - labels.data()) + " has the label " +
                      std::to_string(label) + "; the classes are 0 to " + std::to_string(std::ssize(names_) - 1));
    ++counts_[static_cast<std::size_t>(label)];
  }
}

LOCKSTEP_INLINE std::vector<float> ClassBalance::weights() const {
  auto const each_share = static_cast<double>(samples()) / static_cast<double>(counts_.size());
  std::vector<float> weights;
  for (auto const count : counts_)
    weights.push_back(count == 0 ? 0.0f : static_cast<float>(each_share / static_cast<double>(count)));
  return weights;
}

LOCKSTEP_INLINE std::string ClassBalance::table() const {
  std::size_t width = 4;
  for (auto const& name : names_) width = std::max(width, name.size());
  auto const padded = [width](std::string name) { return name.append(width - name.size(), ' '); };
  auto out = "class  " + padded("name") + "   samples    share     weight\n";
  auto const all = std::max<double>(1, static_cast<double>(samples()));
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "%10lld %6.2f %% %10.4f\n", static_cast<long long>(counts_[i]),
                  100 * static_cast<double>(counts_[i]) / all, static_cast<double>(weights()[i]));
    auto number = std::to_string(i);
    out += number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ') + "  " + padded(names_[i]) + numbers;
  }
  return out;
}

}}}  // namespace lockstep::data
