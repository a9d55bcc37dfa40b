// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/train/metrics/detail/paired_rows.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Recall at k of embeddings, as in metric learning: the share of samples with a sample of their class among the k
/// other samples of the evaluation with the largest dot products. `NeighborRecall{&Face::person, 5}` is reported as
/// "neighbor_recall_5". The model predicts one row per sample, such as those of nn::l2_normalize. Samples whose class
/// has no other sample do not count. A sample of another class with an equal product counts as the nearer, so rows that
/// are all equal give 0. The value does not depend on the batch size or on the number of devices and ranks, except by
/// rounding of the rows. It is 0 without samples. Each rank keeps the rows of all samples, 4 bytes per sample and
/// column, and computes the dot product of each pair.
/// @source Song and others: Deep metric learning via lifted structured feature embedding (2016)
template <class Sample = detail::NoSample, class Label = int>
class NeighborRecall {
 public:
  /// @param label member with the class, any integer   @throws ConfigError if k is not positive
  explicit NeighborRecall(Label Sample::*label, Index k = 1)
      : label_(label), k_(k), name_("neighbor_recall_" + std::to_string(k)) {
    if (k < 1) throw ConfigError("NeighborRecall: k is " + std::to_string(k) + "; it must be at least 1");
  }
  /// Rejects a metric without a member at compile time.
  explicit NeighborRecall(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : NeighborRecall(detail::required_member<Label Sample::*>()) {}

  /// Adds the rows of one batch.
  /// @shape prediction [rows, width], a Variable on the host
  /// @throws ShapeError if it has another number of rows than the batch, or another width than before
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    static_assert(
        requires { prediction.value(Index{0}, Index{0}); },
        "Lockstep: NeighborRecall needs a model whose predict returns one row per sample, a Variable of rank 2; "
        "select it from several outputs with train::HeadMetric; see docs/reference/trainer.md");
    auto const rows = prediction.value;
    auto const positions = batch.positions();
    auto const labels = batch[label_].values;
    expect<ShapeError>(rows.extent[0] == positions.size(), [&] {
      return "NeighborRecall: the model predicts " + to_string(rows.extent) + " and the batch has " +
             std::to_string(positions.size()) + " samples; each sample needs a row";
    });
    Index const width = rows.extent[1];
    for (Index row = 0; row < rows.extent[0]; ++row)
      rows_.add_labelled("NeighborRecall", positions(row), rows.data + row * width, width,
                         static_cast<std::int64_t>(labels(row)));
  }
  /// Returns no totals: the rows are samples.
  [[nodiscard]] std::span<double> totals() noexcept { return {}; }
  /// Returns the rows as bytes, for `add_samples` of a metric of another device or rank.
  [[nodiscard]] std::string samples() const { return rows_.samples(); }
  /// Adds the rows of another metric.
  void add_samples(std::string_view bytes) { rows_.add_samples(bytes); }
  /// Returns the share in [0, 1].
  /// @throws DataError if a dot product is NaN
  [[nodiscard]] double value() const {
    auto const [rows, found] = rows_.neighbors("NeighborRecall", k_);
    return rows == 0 ? 0 : static_cast<double>(found) / static_cast<double>(rows);
  }
  /// Returns "neighbor_recall_K".
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  Label Sample::*label_;
  Index k_;
  std::string name_;
  detail::PairedRows rows_;
};

}}}  // namespace lockstep::train
