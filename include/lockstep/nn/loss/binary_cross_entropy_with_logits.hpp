// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/loss/elementwise_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of binary_cross_entropy_with_logits: weights of positive targets, factor.
struct BinaryCrossEntropyOptions {
  double positive_weight = 1;                 ///< factor on the part of targets that are 1; above 1 for rare positives
  std::span<float const> positive_weights{};  ///< [width] on the host: one factor for each label instead
  double factor = 1;                          ///< multiplies loss and gradient, not the weight: for an auxiliary loss
};

/// Binary cross-entropy for labels that do not exclude each other, with one logit each. The loss is the sum over the
/// elements of
/// -(positive_weight t log s(x) + (1 - t) log(1 - s(x))) for a logit x with target t. Here s(x) = 1 / (1 + e^-x). The
/// weight is the number of elements. The mean equals torch.nn.functional.binary_cross_entropy_with_logits with
/// pos_weight, one number for all labels or one for each. Accurate for any finite logit, because s(x) is never
/// computed: end the model with nn::Linear. Shapes, padding and errors as in elementwise_loss.
/// @shape logits a Variable [rows, width] or a Sequence   @shape target as many numbers in [0, 1]: a view, or a batch's
/// column; or one number for all logits
/// @determinism bitwise, for any number of threads
/// @throws RowError (at Contract::normal, on the host) for a target outside [0, 1], with its position; on a device such
/// a target makes the loss nan
/// @throws ConfigError for a positive weight that is negative or not finite, and for positive_weight in addition to
/// positive_weights   @throws ShapeError if the number of positive_weights is not the number of labels
template <class Context, class Prediction, class Target>
[[nodiscard]] LossOf<Context> binary_cross_entropy_with_logits(Context& context, Prediction const& logits,
                                                               Target const& target,
                                                               BinaryCrossEntropyOptions const& options = {}) {
  auto const check = [](double weight, auto const& name) {
    expect<ConfigError>(std::isfinite(weight) && weight >= 0, [&] {
      return "binary_cross_entropy_with_logits: " + name() + " is " + shortest(weight) +
             "; it must be finite and at least 0, and is often the number of negatives divided by the number of "
             "positives";
    });
  };
  check(options.positive_weight, [] { return std::string("positive_weight"); });
  auto const each = options.positive_weights;
  for (std::size_t i = 0; i < each.size(); ++i)
    check(static_cast<double>(each[i]), [i] { return "positive_weights[" + std::to_string(i) + "]"; });
  expect<ConfigError>(each.empty() || options.positive_weight == 1, [&] {
    return "binary_cross_entropy_with_logits: positive_weight is " + shortest(options.positive_weight) +
           " and there are " + std::to_string(each.size()) +
           " positive_weights; give one for all labels or one for each, not both";
  });
  if constexpr (std::is_arithmetic_v<Target>)
    expect<ConfigError>(each.empty(), [&] {
      return "binary_cross_entropy_with_logits: there are " + std::to_string(each.size()) +
             " positive_weights and one target for all elements; give positive_weight, or a target for each element";
    });
  else if (!each.empty())
    return elementwise_loss(context, kernel::BinaryCrossEntropyByColumn{each}, logits, target, options.factor);
  return elementwise_loss(context, kernel::BinaryCrossEntropy{options.positive_weight}, logits, target, options.factor);
}

/// Rejects calls without a target at compile time.
template <detail::IsContext Context>
LossOf<Context> binary_cross_entropy_with_logits(Context&, auto const&) {
  return detail::reject_missing_target<LossOf<Context>>();
}
/// Rejects calls without the context in front at compile time.
auto binary_cross_entropy_with_logits(detail::NoContext auto const& first, auto const&...) {
  static_cast<void>(detail::reject_call(first));
  return Loss<HostSpace>{};
}

}}}  // namespace lockstep::nn
