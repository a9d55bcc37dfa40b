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
  ClassBalance(std::span<std::int32_t const> labels, std::vector<std::string> names);

  /// Returns the names of the classes, in the order of the labels.
  [[nodiscard]] std::vector<std::string> const& names() const noexcept { return names_; }
  /// Returns the samples of each class.
  [[nodiscard]] std::vector<Index> const& counts() const noexcept { return counts_; }
  /// Returns the samples of all classes.
  [[nodiscard]] Index samples() const noexcept { return std::accumulate(counts_.begin(), counts_.end(), Index{0}); }
  /// Returns the weight of each class: samples / (classes * samples of the class); 0 for a class without samples. The
  /// mean weight of all samples is 1 if every class has samples.
  [[nodiscard]] std::vector<float> weights() const;
  /// Returns a text table with a line for each class: number, name, samples, share of all samples, weight.
  [[nodiscard]] std::string table() const;

 private:
  std::vector<std::string> names_;
  std::vector<Index> counts_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/classes/class_balance.ipp>
#endif
