// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/class_counts.hpp>
#include <lockstep/train/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Intersection over union of each class, the places that have it as label and prediction among those that have it as
/// either, and of these the mean: `MeanIoU{&Scene::mask, 3}`, by the name "mean_iou". Over all of the evaluation's
/// places, not picture by picture; a class that is nowhere does not count. Everything else as of F1.
template <class Sample, class Label>
class MeanIoU {
 public:
  /// @throws ConfigError when there are fewer than two classes
  MeanIoU(Label Sample::*label, Index classes, std::optional<Index> ignored = {})
      : counts_("MeanIoU", label, classes, ignored) {}

  /// @shape prediction [rows, …, classes], a Variable on the host, or a Sequence of such tokens, with a label for each
  /// row, place or slot
  /// @throws ShapeError when the numbers of labels or classes differ, DataError when a label is none of the classes
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    counts_.add(prediction, batch);
  }
  [[nodiscard]] std::span<double> totals() noexcept { return counts_.totals(); }
  [[nodiscard]] double value() const noexcept {
    return counts_.mean(
        [](double labels, double predicted, double both) { return both / (labels + predicted - both); });
  }
  [[nodiscard]] static constexpr char const* name() noexcept { return "mean_iou"; }

 private:
  detail::ClassCounts<Sample, Label> counts_;
};

}}}  // namespace lockstep::train
