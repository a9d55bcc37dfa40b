// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// How the learning rate follows the effective batch (batch size x ranks or devices x accumulation).
enum class LearningRateScaling {
  none,    ///< no scaling
  linear,  ///< times effective / base: keeps the step per sample; usual with SGD; needs a warm-up
  sqrt,    ///< times sqrt(effective / base): keeps the noise per step; usual with Adam
};

/// Returns the factor on the learning rate. Both batch sizes must be at least 1.
[[nodiscard]] inline double factor(LearningRateScaling scaling, Index effective_batch_size,
                                   Index base_batch_size) noexcept {
  auto const ratio = static_cast<double>(effective_batch_size) / static_cast<double>(base_batch_size);
  switch (scaling) {
    case LearningRateScaling::linear:
      return ratio;
    case LearningRateScaling::sqrt:
      return std::sqrt(ratio);
    case LearningRateScaling::none:
      break;
  }
  return 1;
}

}}}  // namespace lockstep::optim
