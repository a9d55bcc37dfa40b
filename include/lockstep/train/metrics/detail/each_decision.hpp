// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/each_target.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Calls f(logit, is_positive, number of the label) for each logit and label of a prediction with one logit for each of
/// `count` labels that do not exclude each other.
/// @throws ShapeError, naming `metric`, for another number of logits or labels
/// @throws DataError, naming `metric`, for a label other than 0 and 1, or a logit that is NaN
template <class Prediction, class Column, class Function>
void each_decision(char const* metric, Prediction const& prediction, Column const& labels, Index count,
                   Function const& f) {
  Index width = 0;
  if constexpr (requires { prediction.layout; })
    width = prediction.tokens.extent(1);
  else if constexpr (requires { prediction.extent(1); })
    width = prediction.extent(1);
  expect<ShapeError>(width == count, [&] {
    return std::string(metric) + ": the model predicts " + std::to_string(width) + " numbers for each row, and " +
           std::to_string(count) + " labels have names; each label needs one logit";
  });
  each_target(metric, prediction, labels, -1, [&](double logit, double label, Index number) {
    if (std::isnan(logit)) refuse_nan(metric);
    expect<DataError>(label == 0 || label == 1, [&] {
      return std::string(metric) + ": label " + std::to_string(number) + " of a row is " + shortest(label) +
             "; it must be 0 or 1";
    });
    f(logit, label == 1, number);
  });
}

}}}  // namespace lockstep::train::detail
