// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/train/metrics/detail/class_counts.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Mean intersection over union over classes: `MeanIoU{&Scene::mask, 3}` reports it as "mean_iou". A class's value is
/// the number of places where label and prediction are the class, over the number of places where either is. It counts
/// all places of the evaluation, not image by image. Classes without places do not count. Predictions and `ignored`
/// labels work as in F1. With names in place of the number of classes, it also reports each class:
/// `MeanIoU{&Scene::mask, {"road", "car", "sky"}, 255}` reports "mean_iou", "iou_road", "iou_car" and "iou_sky".
template <class Sample = detail::NoSample, class Label = int>
class MeanIoU {
 public:
  /// @throws ConfigError if there are fewer than 2 classes
  MeanIoU(Label Sample::*label, Index classes, std::optional<Index> ignored = {})
      : counts_("MeanIoU", label, classes, ignored) {}
  /// Also reports each class by its name.   @throws ConfigError if there are fewer than 2 names
  MeanIoU(Label Sample::*label, std::vector<std::string> names, std::optional<Index> ignored = {})
      : counts_("MeanIoU", label, std::ssize(names), ignored), names_(std::move(names)) {}
  /// Rejects a metric without a member at compile time.
  explicit MeanIoU(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : MeanIoU(detail::required_member<Label Sample::*>(), 2) {}
  /// Rejects a metric without the number of classes at compile time.
  explicit MeanIoU(Label Sample::*label) : MeanIoU(label, detail::required_number<Label>()) {}

  /// Counts one batch.
  /// @shape prediction [rows, …, classes], a Variable on the host or a Sequence of such tokens, with one label for each
  /// row, place or slot
  /// @throws ShapeError if the numbers of labels or classes differ, DataError if a label is not one of the classes, or
  /// a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    counts_.add(prediction, batch);
  }
  /// Returns three counts per class: labels, predictions, correct ones.
  [[nodiscard]] std::span<double> totals() noexcept { return counts_.totals(); }
  /// Returns the mean in [0, 1]; 0 without places.
  [[nodiscard]] double value() const noexcept { return counts_.mean(iou); }
  /// Calls each(name, value) for the mean and for each class with a name. The value of a class without places is NaN.
  template <class Each>
  void values(Each const& each) const {
    each(std::string(name()), value());
    for (std::size_t i = 0; i < names_.size(); ++i) each("iou_" + names_[i], counts_.of(i, iou));
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "mean_iou"; }

 private:
  static constexpr auto iou = [](double labels, double predicted, double both) {
    return both / (labels + predicted - both);
  };

  detail::ClassCounts<Sample, Label> counts_;
  std::vector<std::string> names_;
};

}}}  // namespace lockstep::train
