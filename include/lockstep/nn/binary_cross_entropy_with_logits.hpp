// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/elementwise_loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

struct BinaryCrossEntropyOptions {
  double positive_weight = 1;  ///< on the part of the targets that is 1: above 1 where positives are rare
  double factor = 1;           ///< on loss and gradient, not on the weight: for an auxiliary loss
};

/// For labels that do not exclude each other, one logit each: sum over the elements of
/// -(positive_weight t log s(x) + (1 - t) log(1 - s(x))) with s(x) = 1 / (1 + e^-x) of the logit x and its target t,
/// and their number: the mean is that of torch.nn.functional.binary_cross_entropy_with_logits with pos_weight. Exact to
/// rounding for any finite logit, as no s(x) is computed first: the model ends with nn::Linear. Shapes, padding and
/// errors as of elementwise_loss.
/// @shape logits a Variable [rows, width] or a Sequence   @shape target as many numbers in [0, 1]: a view, or a batch's
/// column
/// @determinism bitwise, for any number of threads
/// @throws RowError (at Contract::normal, on the host) for a target outside [0, 1], with its place; on a device such a
/// target makes the loss nan
/// @throws ConfigError for a positive weight that is negative or not finite
template <class Context, class Prediction, class Target>
[[nodiscard]] Loss<typename Context::Space> binary_cross_entropy_with_logits(
    Context& context, Prediction const& logits, Target const& target, BinaryCrossEntropyOptions const& options = {}) {
  expect<ConfigError>(std::isfinite(options.positive_weight) && options.positive_weight >= 0, [&] {
    return "binary_cross_entropy_with_logits: positive_weight is " + std::to_string(options.positive_weight) +
           "; it must be finite and at least 0, and is often the number of negatives by that of positives";
  });
  return elementwise_loss(context, kernel::BinaryCrossEntropy{options.positive_weight}, logits, target, options.factor);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
