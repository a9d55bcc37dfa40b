// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/scaling/detail/remedy.hpp>
#include <lockstep/scaling/fabric.hpp>
#include <lockstep/scaling/prediction.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Report of a workload on more ranks over a fabric. All values are predictions.
class ScalingReport {
 public:
  /// Factor of samples per second that an efficient doubling of the ranks gives.
  static constexpr double efficient_factor = 1.5;
  /// Factor of samples per second from which on more ranks are useful.
  static constexpr double useful_factor = 1.05;

  /// @param ranks numbers of ranks to predict, ascending
  ScalingReport(Workload work, Fabric const& fabric, std::vector<Index> const& ranks);
  /// Returns 2, 4 … 1024.
  [[nodiscard]] static std::vector<Index> powers_of_two();

  /// Returns predictions with the same batch for each rank.
  [[nodiscard]] std::vector<Prediction> const& weak() const noexcept { return weak_; }
  /// Returns predictions up to one sample per rank.
  [[nodiscard]] std::vector<Prediction> const& strong() const noexcept { return strong_; }

  /// Returns the largest number of ranks up to which each doubling gives at least `efficient_factor` times the samples
  /// per second.
  [[nodiscard]] static Index efficient_until(std::vector<Prediction> const& sizes, double alone);
  /// Returns the largest number of ranks that gives at least `useful_factor` times the samples per second of all
  /// smaller ones.
  [[nodiscard]] static Index useful_until(std::vector<Prediction> const& sizes, double alone);

  /// Returns remedies, the best first, for the first number of ranks with an efficiency below 0.8, or else for the
  /// largest.
  [[nodiscard]] std::vector<detail::Remedy> remedies() const;

  /// Returns tables, limits and remedies for a terminal.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] Prediction const& limiting_size() const;

  [[nodiscard]] std::string table(std::string const& title, std::vector<Prediction> const& sizes,
                                  Scaling scaling) const;

  /// Returns a sentence with the limits up to which more ranks pay, and up to which they help at all.
  [[nodiscard]] static std::string summary(std::vector<Prediction> const& sizes, double alone);

  Workload work_;
  Fabric fabric_;
  std::vector<Prediction> weak_, strong_;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/scaling_report.ipp>
#endif
