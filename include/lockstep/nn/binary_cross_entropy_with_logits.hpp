// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/elementwise_loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

struct BinaryCrossEntropyOptions {
  double positive_weight = 1;  ///< on the part of the targets that is 1: above 1 where positives are rare
  std::span<float const> positive_weights{};  ///< [width] on the host: one for each label instead
  double factor = 1;                          ///< on loss and gradient, not on the weight: for an auxiliary loss
};

/// For labels that do not exclude each other, one logit each: sum over the elements of
/// -(positive_weight t log s(x) + (1 - t) log(1 - s(x))) with s(x) = 1 / (1 + e^-x) of the logit x and its target t,
/// and their number: the mean is that of torch.nn.functional.binary_cross_entropy_with_logits with pos_weight, be it
/// one for all labels or one for each. Exact to rounding for any finite logit, as no s(x) is computed first: the model
/// ends with nn::Linear. Shapes, padding and errors as of elementwise_loss.
/// @shape logits a Variable [rows, width] or a Sequence   @shape target as many numbers in [0, 1]: a view, or a batch's
/// column
/// @determinism bitwise, for any number of threads
/// @throws RowError (at Contract::normal, on the host) for a target outside [0, 1], with its place; on a device such a
/// target makes the loss nan
/// @throws ConfigError for a positive weight that is negative or not finite, and for positive_weight beside
/// positive_weights   @throws ShapeError for more or fewer positive_weights than labels
template <class Context, class Prediction, class Target>
[[nodiscard]] LossOf<Context> binary_cross_entropy_with_logits(Context& context, Prediction const& logits,
                                                               Target const& target,
                                                               BinaryCrossEntropyOptions const& options = {}) {
  auto const check = [](double weight, auto const& name) {
    expect<ConfigError>(std::isfinite(weight) && weight >= 0, [&] {
      return "binary_cross_entropy_with_logits: " + name() + " is " + std::to_string(weight) +
             "; it must be finite and at least 0, and is often the number of negatives by that of positives";
    });
  };
  check(options.positive_weight, [] { return std::string("positive_weight"); });
  auto const each = options.positive_weights;
  for (std::size_t i = 0; i < each.size(); ++i)
    check(static_cast<double>(each[i]), [i] { return "positive_weights[" + std::to_string(i) + "]"; });
  expect<ConfigError>(each.empty() || options.positive_weight == 1, [&] {
    return "binary_cross_entropy_with_logits: positive_weight is " + std::to_string(options.positive_weight) +
           " and there are " + std::to_string(each.size()) +
           " positive_weights; give one for all labels or one for each, not both";
  });
  if (!each.empty())
    return elementwise_loss(context, kernel::BinaryCrossEntropyByColumn{each}, logits, target, options.factor);
  return elementwise_loss(context, kernel::BinaryCrossEntropy{options.positive_weight}, logits, target, options.factor);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
