// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

namespace detail {

/// Returns the logits of a row or place of a Variable on the host, of a slot of a Sequence, or of a row of a tensor.
/// @throws ShapeError if there is no such row, or it has no logits
template <class Prediction>
[[nodiscard]] auto logits_of(char const* caller, Prediction const& prediction, Index row) {
  if constexpr (requires { prediction.tokens; }) {
    return logits_of(caller, prediction.tokens, row);
  } else if constexpr (requires { prediction.value; }) {
    return logits_of(caller, prediction.value, row);
  } else {
    Index const width = prediction.extent.back(), rows = width == 0 ? 0 : prediction.size() / width;
    if (row < 0 || row >= rows)
      throw ShapeError(std::string(caller) + ": row " + std::to_string(row) + " of a prediction with " +
                       std::to_string(rows) + " rows of " + std::to_string(width) + " logits");
    return std::span(prediction.data + row * width, static_cast<std::size_t>(width));
  }
}

/// Returns the row of the logits that follow a sequence's last token, of a prediction for `rows` sequences: a Sequence,
/// or a Variable with equally many rows for each.
template <class Prediction>
[[nodiscard]] Index last_slot(Prediction const& prediction, Index row, Index rows) {
  if constexpr (requires { prediction.layout; })
    return prediction.layout.start(row) + prediction.layout.tokens(row) - 1;
  else
    return (row + 1) * (prediction.value.extent[0] / rows) - 1;
}

}  // namespace detail

/// Returns the class with the largest logit of a row, as train::Accuracy counts it: the first of equal logits, and for
/// a single logit class 1 if it is above 0. NaN is never the largest.
/// @param row a row or place of a Variable on the host, or a slot of a Sequence
/// @throws ShapeError if the prediction has no such row
template <class Prediction>
[[nodiscard]] Index predicted_class(Prediction const& prediction, Index row) {
  auto const logits = detail::logits_of("predicted_class", prediction, row);
  if (logits.size() == 1) return static_cast<float>(logits[0]) > 0 ? 1 : 0;
  return std::max_element(logits.begin(), logits.end(),
                          [](auto a, auto b) { return static_cast<float>(a) < static_cast<float>(b); }) -
         logits.begin();
}

/// Returns the class of each token of a sequence, without padding: the tags of a sentence, or the states of a
/// recording. Each is the predicted_class of its slot.
/// @param prediction a Sequence of logits on the host
/// @param row number of the sequence in the batch
/// @throws ShapeError if the prediction has no such sequence
template <class Prediction>
[[nodiscard]] std::vector<Index> predicted_classes(Prediction const& prediction, Index row) {
  constexpr bool has_tokens = requires { prediction.layout; };
  static_assert(has_tokens,
                "Lockstep: predicted_classes reads the logits of tokens: predict returns a Sequence; for a Variable, "
                "train::predicted_class returns the class of a row");
  std::vector<Index> classes;
  if constexpr (has_tokens) {
    auto const& layout = prediction.layout;
    if (row < 0 || row >= layout.rows)
      throw ShapeError("predicted_classes: sequence " + std::to_string(row) + " of a prediction with " +
                       std::to_string(layout.rows) + " sequences");
    for (Index slot = layout.start(row), end = slot + layout.tokens(row); slot < end; ++slot)
      classes.push_back(predicted_class(prediction, slot));
  }
  return classes;
}

/// Returns the probability of each class for a row of logits: the softmax of logits / temperature. A single logit x
/// gives the probabilities of the classes 0 and 1, of which the second is 1 / (1 + exp(-x / temperature)).
/// @param row as for predicted_class
/// @param temperature such as train::Temperature measures to calibrate probabilities
/// @throws ShapeError if the prediction has no such row
/// @throws ConfigError unless the temperature is positive and finite
template <class Prediction>
[[nodiscard]] std::vector<double> class_probabilities(Prediction const& prediction, Index row, double temperature = 1) {
  if (!(temperature > 0 && std::isfinite(temperature)))
    throw ConfigError("class_probabilities: the temperature is " + std::to_string(temperature) +
                      "; it must be positive and finite");
  auto const logits = detail::logits_of("class_probabilities", prediction, row);
  std::vector<double> out(logits.begin(), logits.end());
  if (out.size() == 1) out.insert(out.begin(), 0.0);
  double const largest = *std::max_element(out.begin(), out.end());
  double sum = 0;
  for (auto& p : out) sum += p = std::exp((p - largest) / temperature);
  for (auto& p : out) p /= sum;
  return out;
}

}}}  // namespace lockstep::train
