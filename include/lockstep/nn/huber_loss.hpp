// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/elementwise_loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

struct HuberLossOptions {
  double delta = 1;   ///< the distance from the target beyond which the loss grows no faster: the gradient's bound
  double factor = 1;  ///< on loss and gradient, not on the weight: for an auxiliary loss
};

/// Sum over the elements of d^2 / 2 where d = |prediction - target| is at most delta, and delta (d - delta / 2) beyond,
/// and their number: the mean is that of torch.nn.functional.huber_loss. With the factor 1 / delta it is that of
/// smooth_l1_loss with beta = delta. Shapes, padding and errors as of elementwise_loss.
/// @shape prediction a Variable [rows, width] or a Sequence   @shape target as many numbers: a view, or a batch's
/// column
/// @determinism bitwise, for any number of threads
/// @throws ConfigError for a delta that is not positive
template <class Context, class Prediction, class Target>
[[nodiscard]] LossOf<Context> huber_loss(Context& context, Prediction const& prediction, Target const& target,
                                         HuberLossOptions const& options = {}) {
  expect<ConfigError>(options.delta > 0, [&] {
    return "huber_loss: delta is " + std::to_string(options.delta) + "; it must be positive, and 1 is usual";
  });
  return elementwise_loss(context, kernel::HuberLoss{options.delta}, prediction, target, options.factor);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
