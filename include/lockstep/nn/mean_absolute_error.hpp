// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/elementwise_loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

struct MeanAbsoluteErrorOptions {
  double factor = 1;  ///< on loss and gradient, not on the weight: for an auxiliary loss
};

/// The L1 loss: sum over the elements of |prediction - target|, and their number; the mean is that of
/// torch.nn.functional.l1_loss. Shapes, padding and errors as of elementwise_loss.
/// @shape prediction a Variable [rows, width] or a Sequence   @shape target as many numbers: a view, or a batch's
/// column
/// @determinism bitwise, for any number of threads
template <class Context, class Prediction, class Target>
[[nodiscard]] LossOf<Context> mean_absolute_error(Context& context, Prediction const& prediction, Target const& target,
                                                  MeanAbsoluteErrorOptions const& options = {}) {
  return elementwise_loss(context, kernel::AbsoluteError{}, prediction, target, options.factor);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
