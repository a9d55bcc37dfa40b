// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Counts the training samples of each class and computes loss weights that balance rare and frequent classes.
/// `ClassBalance{labels, {"rest", "walk"}}.weights()` fits `CrossEntropyOptions::class_weights`.
class ClassBalance {
 public:
  /// @param names one for each class, in the order of the labels
  /// @throws DataError for a label outside [0, names.size()), with the sample's number
  ClassBalance(std::span<std::int32_t const> labels, std::vector<std::string> names)
      : names_(std::move(names)), counts_(names_.size()) {
    for (auto const& label : labels) {
      if (label < 0 || label >= std::ssize(names_))
        throw DataError("ClassBalance: sample " + std::to_string(&label - labels.data()) + " has the label " +
                        std::to_string(label) + "; the classes are 0 to " + std::to_string(std::ssize(names_) - 1));
      ++counts_[static_cast<std::size_t>(label)];
    }
  }

  [[nodiscard]] std::vector<std::string> const& names() const noexcept { return names_; }
  [[nodiscard]] std::vector<Index> const& counts() const noexcept { return counts_; }
  [[nodiscard]] Index samples() const noexcept { return std::accumulate(counts_.begin(), counts_.end(), Index{0}); }
  /// Returns the weight of each class: samples / (classes * samples of the class); 0 for a class without samples. The
  /// mean weight of all samples is 1 if every class has samples.
  [[nodiscard]] std::vector<float> weights() const {
    auto const each_share = static_cast<double>(samples()) / static_cast<double>(counts_.size());
    std::vector<float> weights;
    for (auto const count : counts_)
      weights.push_back(count == 0 ? 0.0f : static_cast<float>(each_share / static_cast<double>(count)));
    return weights;
  }
  /// Returns a text table with a line for each class: number, name, samples, share of all samples, weight.
  [[nodiscard]] std::string table() const {
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

 private:
  std::vector<std::string> names_;
  std::vector<Index> counts_;
};

}}}  // namespace lockstep::data
