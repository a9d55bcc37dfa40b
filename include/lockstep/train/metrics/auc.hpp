// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// Returns the share of pairs of a logit of `zeros` and one of `others` in which the second is larger; equal ones count
/// half. Sorts them and counts pairs as integers, so that the value does not depend on their order.
[[nodiscard]] double area_under_curve(std::vector<float> zeros, std::vector<float> others);

}  // namespace detail

/// Area under the receiver operating characteristic curve: `Auc{&Click::clicked}`. It counts pairs of a sample with a
/// label other than 0 and a sample with label 0. The value is the share of pairs in which the first has the larger
/// logit. Equal logits count half. The value is 0 without pairs.
/// The model predicts one logit per sample or token. The value is exact: the metric keeps the logits, 4 bytes each, and
/// an evaluation gathers them from all devices and ranks. A program that adds up `totals()` by itself, and passes on no
/// `samples()`, gets the area over logits rounded to bfloat16, in which logits that differ by less than 0.4 % are
/// equal.
/// @source Fawcett: An introduction to ROC analysis (2006)
template <class Sample, class Label>
class Auc {
 public:
  /// @param label member that is 0 or another number
  explicit Auc(Label Sample::*label) : label_(label) {}

  /// Counts one batch.
  /// @shape prediction [rows, 1], a Variable on the host or a Sequence of such tokens
  /// @throws ShapeError if the prediction is wider, or its rows and the labels differ in number
  /// @throws DataError if a logit is not a number
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    detail::each_label("Auc", prediction, batch[label_], {}, [&](auto const* logits, Index width, auto label) {
      expect<ShapeError>(width == 1, [&] {
        return "Auc: the model predicts " + std::to_string(width) + " numbers for each label; it takes one logit";
      });
      auto const logit = static_cast<float>(logits[0]);
      bool const other = label != decltype(label){};
      ++totals_[2 * bin_of(logit) + (other ? 1 : 0)];
      logits_[other ? 1 : 0].push_back(logit);
    });
  }
  /// Returns counts of logits by bfloat16 value and label.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the logits as bytes, for `add_samples` of a metric of another device or rank.
  [[nodiscard]] std::string samples() const {
    std::string bytes;
    for (auto const& logits : logits_) {
      std::uint64_t const count = logits.size();
      bytes.append(reinterpret_cast<char const*>(&count), sizeof count);
      bytes.append(reinterpret_cast<char const*>(logits.data()), logits.size() * sizeof(float));
    }
    return bytes;
  }
  /// Adds the logits of another metric, which do not count in the totals: these add up apart.
  void add_samples(std::string_view bytes) {
    for (auto& logits : logits_) {
      std::uint64_t count = 0;
      std::memcpy(&count, bytes.data(), sizeof count);
      bytes.remove_prefix(sizeof count);
      auto const before = logits.size();
      logits.resize(before + count);
      if (count > 0) std::memcpy(logits.data() + before, bytes.data(), count * sizeof(float));
      bytes.remove_prefix(count * sizeof(float));
    }
  }
  /// Returns the area in [0, 1].
  [[nodiscard]] double value() const {
    double counted = 0;
    for (double const count : totals_) counted += count;
    return counted == static_cast<double>(logits_[0].size() + logits_[1].size())
               ? detail::area_under_curve(logits_[0], logits_[1])
               : rounded_value();
  }
  /// Returns the name in reports.
  [[nodiscard]] static constexpr char const* name() noexcept { return "auc"; }

 private:
  static constexpr std::size_t bins = 65536;

  [[nodiscard]] double rounded_value() const noexcept {
    double zeros = 0, others = 0, right = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      auto const zeros_in_bin = totals_[2 * bin], others_in_bin = totals_[2 * bin + 1];
      right += others_in_bin * (zeros + zeros_in_bin / 2);
      zeros += zeros_in_bin;
      others += others_in_bin;
    }
    return zeros > 0 && others > 0 ? right / (zeros * others) : 0;
  }

  /// Returns the rank of a number among all bfloat16 values in ascending order. 0 and -0 share a rank.
  [[nodiscard]] static std::size_t bin_of(float logit) noexcept {
    auto const bits = static_cast<unsigned>(bfloat16(logit + 0.0f).bits);
    return (bits & 0x8000u) != 0 ? 0xffffu - bits : 0x8000u + bits;
  }

  Label Sample::*label_;
  std::vector<double> totals_ = std::vector<double>(2 * bins);  // for each bfloat16 value: labels of 0, other labels
  std::array<std::vector<float>, 2> logits_;                    // of labels of 0, of other labels
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/auc.ipp>
#endif
