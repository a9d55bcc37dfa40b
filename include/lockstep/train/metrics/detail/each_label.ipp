// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void refuse_nan(char const* metric) {
  throw DataError(std::string(metric) +
                  ": the model predicts a logit that is nan; look for NaN in its parameters and its input "
                  "(data::FiniteCheck checks samples)");
}

LOCKSTEP_COLD_INLINE void refuse_label(char const* metric, double label) {
  throw DataError(
      std::string(metric) + ": a label is " + shortest(label) +
      "; labels of classes are whole numbers, so round them; train::MeanAbsoluteError compares real numbers");
}

LOCKSTEP_COLD_INLINE void refuse_labels(char const* metric, Index wanted, char const* of_what, Index labels) {
  throw ShapeError(std::string(metric) + ": the prediction has " + std::to_string(wanted) + " " + of_what +
                   " and there are " + std::to_string(labels) + " labels; each needs one");
}

}}}  // namespace lockstep::train::detail
