// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the rank of the label's logit among all logits of a row, from 0 for the largest. The first of equal logits
/// counts as the larger.
/// @throws DataError, naming `metric`, if the label is not one of the classes
template <class Logit>
[[nodiscard]] Index rank_of_label(char const* metric, Logit const* logits, Index width, Index label) {
  expect<DataError>(label >= 0 && label < width, [&] {
    return std::string(metric) + ": a label is " + std::to_string(label) + "; the model predicts the classes 0 to " +
           std::to_string(width - 1) +
           (width == 1 ? "; for one score for each document of a query use train::GradedNdcg" : "");
  });
  Index before = 0;
  for (Index c = 0; c < width; ++c) before += logits[c] > logits[label] || (c < label && !(logits[c] < logits[label]));
  return before;
}

}}}  // namespace lockstep::train::detail
