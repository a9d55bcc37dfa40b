// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/detail/same_lengths.hpp>
#include <lockstep/train/metric.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {

/// The share of samples whose largest logit is their label's: `Accuracy{&Article::label}`; of a model that predicts
/// sequences, the share of tokens. Of equal logits the first counts. What has the `ignored` label is left out, as
/// CrossEntropyOptions::ignored leaves it. No samples give 0.
template <class Sample, class Label>
class Accuracy {
 public:
  explicit Accuracy(Label Sample::*label, std::optional<Index> ignored = {}) : label_(label), ignored_(ignored) {}

  /// @shape prediction [rows, classes], a Variable on the host, or a Sequence of such tokens, with a label for each
  /// slot
  /// @throws ShapeError when there are more or fewer labels than rows or slots, or than a sequence has tokens
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    nn::detail::expect_same_lengths("Accuracy", prediction, batch[label_]);
    auto const labels = batch[label_].values;
    if constexpr (requires { prediction.layout; }) {
      auto const& layout = prediction.layout;
      expect_labels(labels.size(), layout.slots, "slots");
      for (Index row = 0; row < layout.rows; ++row)
        for (Index slot = layout.start(row); slot < layout.start(row) + layout.tokens(row); ++slot)
          count(prediction.tokens, slot, static_cast<Index>(labels.data[slot]));
    } else {
      auto const rows = prediction.extent(0);
      expect_labels(labels.size(), rows, "rows");
      for (Index row = 0; row < rows; ++row) count(prediction, row, static_cast<Index>(labels.data[row]));
    }
  }
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  [[nodiscard]] double value() const noexcept { return totals_[1] == 0 ? 0 : totals_[0] / totals_[1]; }
  [[nodiscard]] static constexpr char const* name() noexcept { return "accuracy"; }

 private:
  static void expect_labels(Index labels, Index wanted, char const* of_what) {
    expect<ShapeError>(labels == wanted, [&] {
      return "Accuracy: the prediction has " + std::to_string(wanted) + " " + of_what + " and there are " +
             std::to_string(labels) + " labels; each needs one";
    });
  }
  template <class Logits>
  void count(Logits const& all, Index row, Index label) {
    if (label == ignored_) return;
    auto const* logits = all.value.data + row * all.extent(1);
    auto const best = std::max_element(logits, logits + all.extent(1)) - logits;
    totals_[0] += best == label ? 1 : 0;
    totals_[1] += 1;
  }

  Label Sample::*label_;
  std::optional<Index> ignored_;
  std::array<double, 2> totals_{};  // right, all
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train
