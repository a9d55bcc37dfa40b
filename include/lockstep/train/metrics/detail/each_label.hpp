// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/column.hpp>
#include <lockstep/nn/autograd/variable.hpp>
#include <lockstep/nn/loss/expect_same_lengths.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns false if the row's std::optional label is empty.
template <class Column>
[[nodiscard]] bool has_label([[maybe_unused]] Column const& labels, [[maybe_unused]] Index row) {
  if constexpr (requires { labels.present; }) return labels.present(row);
  return true;
}

/// @throws DataError for a logit that is NaN
[[noreturn, gnu::cold]] void refuse_nan(char const* metric);
/// @throws ShapeError for another number of labels than of rows, slots or tokens
[[noreturn, gnu::cold]] void refuse_labels(char const* metric, Index wanted, char const* of_what, Index labels);

/// @throws DataError for a label that is not a whole number
[[noreturn, gnu::cold]] void refuse_label(char const* metric, double label);

/// Returns a label as the index of its class. Labels of 0 and 1 may be real numbers, as binary cross-entropy takes
/// them.
/// @throws DataError, naming `metric`, if the label is not a whole number
template <class Label>
[[nodiscard]] Index class_index(char const* metric, Label label) {
  if constexpr (std::is_integral_v<Label> || std::is_enum_v<Label>) {
    return static_cast<Index>(label);
  } else {
    auto const number = static_cast<double>(label);
    if (!(std::abs(number) < 0x1p53) || number != std::trunc(number)) refuse_label(metric, number);
    return static_cast<Index>(number);
  }
}

/// Checks the logits of a row whose label counts. A comparison with NaN is false, so that a metric of NaN would look
/// like that of a model that predicts the first class.
/// @throws DataError, naming `metric`, if one is NaN
template <class Logit>
void expect_numbers(char const* metric, Logit const* logits, Index width) {
  bool is_nan = false;
  for (Index i = 0; i < width; ++i) is_nan |= std::isnan(static_cast<float>(logits[i]));
  if (is_nan) refuse_nan(metric);
}

template <class Prediction>
inline constexpr bool is_matrix = false;
template <class Scalar, class Space>
inline constexpr bool is_matrix<nn::Variable<Scalar, 2, Space>> = true;

/// Whether a column holds arrays of real numbers.
template <class Column>
inline constexpr bool holds_vectors = false;
template <std::floating_point Value, std::size_t Count, class Space>
inline constexpr bool holds_vectors<data::ArrayColumn<Value, Count, Space>> = true;

/// Whether a prediction has logits: a Variable, a Sequence, or a matrix of another library.
template <class Prediction>
concept HasLogits = requires(Prediction const& prediction) {
  prediction.layout;
}
|| requires(Prediction const& prediction) { prediction.extent(0), prediction.value.data; };

template <class Prediction, class Column, class Function>
void each_valid_label(char const* metric, Prediction const& prediction, Column const& labels,
                      std::optional<Index> ignored, Function const& f) {
  auto const expect_labels = [&](Index wanted, char const* of_what) {
    if (labels.values.size() != wanted) refuse_labels(metric, wanted, of_what, labels.values.size());
  };
  auto const one = [&](auto const& outputs, Index row) {
    if (!has_label(labels, row)) return;
    Index const width = outputs.extent(1);
    auto const label = labels.values.data[row];
    if (ignored && class_index(metric, label) == *ignored) return;
    auto const* const logits = outputs.value.data + row * width;
    expect_numbers(metric, logits, width);
    f(logits, width, label);
  };
  if constexpr (requires { prediction.layout; }) {
    auto const& layout = prediction.layout;
    nn::expect_same_lengths(metric, prediction, labels);
    expect_labels(layout.slots, "slots");
    for (Index row = 0; row < layout.rows; ++row)
      for (Index slot = layout.start(row); slot < layout.start(row) + layout.tokens(row); ++slot)
        one(prediction.tokens, slot);
  } else if constexpr (requires { prediction.as_rows(); }) {
    auto const rows = prediction.as_rows();
    expect_labels(rows.extent(0), "rows");
    for (Index row = 0; row < rows.extent(0); ++row) one(rows, row);
  } else {  // matrix of another library
    Index const rows = prediction.extent(0);
    expect_labels(rows, "rows");
    for (Index row = 0; row < rows; ++row) one(prediction, row);
  }
}

/// Calls f(logits, number of logits, label) for each row with a label of a prediction on the host. For a Sequence it
/// calls f for each token, without padding. Rows whose label equals `ignored` are left out.
/// @throws ShapeError, naming `metric`, if the number of labels differs from the number of rows, slots or tokens
/// @throws DataError, naming `metric`, if a logit is NaN
template <class Prediction, class Column, class Function>
void each_label(char const* metric, Prediction const& prediction, Column const& labels, std::optional<Index> ignored,
                Function const& f) {
  constexpr bool has_logits = HasLogits<Prediction>, has_numbers = requires { labels.values.data; };
  constexpr bool has_one_label = !(is_matrix<Prediction> && holds_vectors<Column>);
  static_assert(has_logits,
                "Lockstep: metrics of labels read logits: predict returns a Variable or a Sequence. If it "
                "returns several in a struct, train::HeadMetric names one; see docs/reference/model.md");
  static_assert(has_numbers,
                "Lockstep: a metric's label is a number, and this member of the sample is text or a struct: number the "
                "classes, as data::ClassNames does");
  static_assert(
      has_one_label,
      "Lockstep: predict returns logits [rows, classes], with one label for each row, and this member of the "
      "sample is a std::array of real numbers: give the metric a member that is a number, or measure labels that do "
      "not exclude each other by train::MultilabelF1");
  if constexpr (has_logits && has_numbers && has_one_label) each_valid_label(metric, prediction, labels, ignored, f);
}

/// Calls f(logits, number of logits, label) as `each_label`, with the label as the index of its class.
/// @throws DataError, naming `metric`, also if a label is not a whole number
template <class Prediction, class Column, class Function>
void each_class(char const* metric, Prediction const& prediction, Column const& labels, std::optional<Index> ignored,
                Function const& f) {
  each_label(metric, prediction, labels, ignored,
             [&](auto const* logits, Index width, auto label) { f(logits, width, class_index(metric, label)); });
}

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/detail/each_label.ipp>
#endif
