// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <iterator>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/loss/elementwise_loss.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/loss/detail/expect_present.hpp>
#include <lockstep/nn/loss/expect_same_lengths.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {

/// Whether a rule of a loss can be called as kernels call it.
template <class Rule>
[[nodiscard]] consteval bool is_loss_rule() {
  if constexpr (kernel::LossOfPrediction<Rule>)
    return true;
  else if constexpr (kernel::LossByColumn<Rule>)
    return std::is_invocable_r_v<kernel::LossAt<float>, Rule const&, float, float, float>;
  else
    return std::is_invocable_r_v<kernel::LossAt<float>, Rule const&, float, float>;
}
/// Returns a rule's name. Rejects a rule without one at compile time.
template <class Rule>
[[nodiscard]] constexpr char const* rule_name() noexcept {
  constexpr bool named = requires {
    { Rule::name } -> std::convertible_to<char const*>;
  };
  static_assert(named,
                "Lockstep: the rule of nn::elementwise_loss says its name: static constexpr char const* name; see "
                "docs/how-to/add-a-layer.md");
  if constexpr (named)
    return Rule::name;
  else
    return "";
}

/// Rejects a prediction at compile time that is no Variable and no Sequence. Returns whether it is one.
template <class Prediction>
[[nodiscard]] consteval bool is_prediction() {
  static_assert(
      LayerOutput<Prediction>,
      "Lockstep: a loss takes a prediction, a Variable or a Sequence; if predict returns several in a struct, "
      "pass one of its members; see docs/reference/model.md");
  return LayerOutput<Prediction>;
}

/// Computes the loss with the targets that `target_of(prediction)` returns for the prediction as the kernel reads it.
template <class Context, class Rule, class TargetOf>
[[nodiscard]] LossOf<Context> loss_of_elements(Context& context, Rule const& rule,
                                               SequenceOf<Context> const& prediction, double factor,
                                               TargetOf const& target_of,
                                               TensorView<float const, 1, typename Context::Space> factors = {},
                                               TensorView<bool const, 1, typename Context::Space> present = {}) {
  using Kernel = kernel::ElementwiseLoss<typename Context::Space>;
  auto const extent = prediction.tokens.value.extent;
  Extents<1> const parts{Kernel::chunks(extent[0], extent[1])};
  auto const sums = context.template temporary<double>(parts), weights = context.template temporary<double>(parts);
  Staging work(context);
  auto const gradient = work.loss_gradient(prediction.tokens);
  auto const x = work.read_for_loss(prediction.tokens.value);
  auto const target = target_of(x);
  constexpr bool callable = is_loss_rule<Rule>();
  static_assert(callable,
                "Lockstep: the rule of nn::elementwise_loss has a template operator()(T prediction, T target) const "
                "that returns kernel::LossAt<T>{value, slope}; see docs/how-to/add-a-layer.md");
  if constexpr (callable)
    Kernel::template forward_backward<LossOperand<Context>,
                                      std::remove_const_t<std::remove_pointer_t<decltype(target.data)>>>(
        context.stream(), prediction.layout, rule, static_cast<typename Context::Real>(factor), x, target, sums,
        weights, {gradient.data, extent}, gradient.write, factors, present);
  return LossOf<Context>::of(context, sums, weights);
}

/// Computes the loss of given targets. `factors` and `present` may be null views.
template <class Context, class Rule, class Target, int Rank>
[[nodiscard]] LossOf<Context> loss_of_targets(Context& context, Rule const& rule, SequenceOf<Context> const& prediction,
                                              TensorView<Target, Rank, typename Context::Space> target, double factor,
                                              TensorView<float const, 1, typename Context::Space> factors,
                                              TensorView<bool const, 1, typename Context::Space> present = {}) {
  static_assert(std::is_arithmetic_v<Target>, "Lockstep: a loss of single elements takes numbers as targets");
  auto const extent = prediction.tokens.value.extent;
  expect<ShapeError>(extent[0] == prediction.layout.slots && target.size() == elements(extent), [&] {
    return std::string(rule_name<Rule>()) + ": the prediction is " + to_string(extent) + " and the target " +
           to_string(target.extent) + "; each element of the prediction needs one of the target";
  });
  if constexpr (kernel::LossByColumn<Rule>)
    expect<ShapeError>(std::ssize(rule.columns) == extent[1], [&] {
      return std::string(rule_name<Rule>()) + ": the prediction is " + to_string(extent) + " and there are " +
             std::to_string(std::ssize(rule.columns)) + " weights of its columns; each column needs one";
    });
  return loss_of_elements(
      context, rule, prediction, factor, [&](auto const&) { return target.reshape(extent); }, factors, present);
}

}  // namespace detail

/// Sum over the tokens' elements of rule(prediction, target), times `factor`; the weight is the number of elements.
/// `rule` is a rule of kernel/loss/loss_rules.hpp or your own. Padding counts nothing. While recording, forward also
/// writes the gradient of the sum next to the prediction: one pass serves forward and backward.
/// @shape prediction.tokens [slots, width]   @shape target [slots, width], any extents with as many numbers, outermost
/// first
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if target has another number of elements, or the rule another number of columns
/// @throws RowError (at Contract::normal, on the host) for a target that the rule rejects, with its position
template <class Context, class Rule, class Target, int Rank>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule,
                                               SequenceOf<Context> const& prediction,
                                               TensorView<Target, Rank, typename Context::Space> target,
                                               double factor = 1) {
  return detail::loss_of_targets(context, rule, prediction, target, factor, {});
}

/// Loss of one vector per row, or per pixel of an image.
/// @shape prediction [rows, …, width]   @shape target as many numbers, outermost first
template <class Context, class Rule, class Target, int PredictionRank, int Rank>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule,
                                               VariableOf<Context, PredictionRank> prediction,
                                               TensorView<Target, Rank, typename Context::Space> target,
                                               double factor = 1) {
  return elementwise_loss(context, rule, detail::as_tokens(prediction), target, factor);
}

/// Loss with a column of a batch as targets: any object that holds them as `.values`.
/// @throws ShapeError (on the host) if a sequence has more or fewer targets than tokens; RowError for a row whose
/// std::optional target is empty
template <class Context, class Rule, class Prediction, class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, Prediction const& prediction,
                                               Column const& target, double factor = 1) {
  if constexpr (detail::is_prediction<Prediction>()) {
    expect_same_lengths(detail::rule_name<Rule>(), prediction, target);
    detail::expect_present<typename Context::Space>(
        detail::rule_name<Rule>(), target, [](auto) { return false; },
        "nn::where_present(targets) leaves such rows out of the loss");
    return elementwise_loss(context, rule, prediction, target.values, factor);
  } else {
    return {};
  }
}

/// Targets of which some are missing: the result of `where_present`.
template <class Column>
struct WherePresent {
  Column targets;  ///< column of optional numbers
};
/// Excludes missing targets from an elementwise loss: pass a column of std::optional numbers through this function.
/// Rows without a number count nothing in loss and weight, and their gradient is zero.
template <class Column>
requires requires(Column const& column) { column.present; }
[[nodiscard]] WherePresent<Column> where_present(Column const& targets) { return {targets}; }
/// Rejects columns without missing numbers at compile time.
template <class Column>
requires(!requires(Column const& column) { column.present; }) Column where_present(Column const& targets) {
  static_assert(!std::is_same_v<Column, Column>,
                "Lockstep: nn::where_present takes a column of std::optional numbers; if all rows have a target, pass "
                "the column alone");
  return targets;
}

namespace detail {
/// Computes the loss of a column or a view with a target for each token, or of a column with some missing.
template <class Context, class Rule, class Target>
[[nodiscard]] LossOf<Context> loss_of_target(Context& context, Rule const& rule, SequenceOf<Context> const& prediction,
                                             Target const& target, double factor,
                                             TensorView<float const, 1, typename Context::Space> factors = {}) {
  return loss_of_targets(context, rule, prediction, numbers_of(target), factor, factors);
}
template <class Context, class Rule, class Column>
[[nodiscard]] LossOf<Context> loss_of_target(Context& context, Rule const& rule, SequenceOf<Context> const& prediction,
                                             WherePresent<Column> const& known, double factor,
                                             TensorView<float const, 1, typename Context::Space> factors = {}) {
  auto const rows = prediction.layout.slots;
  expect<ShapeError>(rows == known.targets.present.size(), [&] {
    return std::string(rule_name<Rule>()) + ": the prediction has " + std::to_string(rows) + " rows and there are " +
           std::to_string(known.targets.present.size()) + " targets; each row needs one";
  });
  return loss_of_targets(context, rule, prediction, known.targets.values, factor, factors, known.targets.present);
}
}  // namespace detail

/// Loss with missing targets.
/// @shape prediction [rows, 1]
template <class Context, class Rule, class Column>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, VariableOf<Context, 2> prediction,
                                               WherePresent<Column> const& known, double factor = 1) {
  return detail::loss_of_target(context, rule, detail::as_tokens(prediction), known, factor);
}
/// Rejects predictions that are no Variable at compile time.
template <class Context, class Rule, class Prediction, class Column>
requires(!detail::LayerOutput<Prediction>) LossOf<Context> elementwise_loss(Context&, Rule const&, Prediction const&,
                                                                            WherePresent<Column> const&, double = 1) {
  static_cast<void>(detail::is_prediction<Prediction>());
  return {};
}

/// Targets with a factor for each row, pixel or token: the result of `weighted`.
template <class Target, class Factors>
struct WeightedTarget {
  Target target;    ///< targets, perhaps with missing ones
  Factors factors;  ///< one for each row, place or token
};
/// Weights the targets of an elementwise loss: multiplies the loss of each row or token by its factor, for example a
/// sample weight. Factors multiply loss and gradient, not the weight, like cross_entropy's. `target` may be the result
/// of `where_present`, but not a number.
/// @shape factors [rows] or [slots]: a column or a view of floats
template <class Target, class Factors>
[[nodiscard]] WeightedTarget<Target, Factors> weighted(Target const& target, Factors const& factors) {
  return {target, factors};
}
/// Deprecated: use WeightedTarget.
template <class Target, class Factors>
using Weighed [[deprecated("nn::WeightedTarget")]] = WeightedTarget<Target, Factors>;
/// Deprecated: use weighted().
template <class Target, class Factors>
[[deprecated("nn::weighted"), nodiscard]] WeightedTarget<Target, Factors> weighed(Target const& target,
                                                                                  Factors const& factors) {
  return weighted(target, factors);
}
/// Loss with weighted targets.
/// @throws ShapeError if the number of factors is not the number of rows or tokens; RowError for a row without a target
/// whose factor is not 0
template <class Context, class Rule, class Prediction, class Target, class Factors>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, Prediction const& prediction,
                                               WeightedTarget<Target, Factors> const& weighted, double factor = 1) {
  expect_same_lengths(detail::rule_name<Rule>(), prediction, weighted.target);
  expect_same_lengths(detail::rule_name<Rule>(), prediction, weighted.factors);
  auto const factors = detail::numbers_of(weighted.factors);
  static_assert(std::is_same_v<std::remove_const_t<std::remove_pointer_t<decltype(factors.data)>>, float>,
                "Lockstep: nn::weighted takes a float for each row as its factors");
  auto const loss = [&](auto const& tokens) {
    expect<ShapeError>(factors.size() == tokens.layout.slots, [&] {
      return std::string(detail::rule_name<Rule>()) + ": the prediction has " + std::to_string(tokens.layout.slots) +
             " rows and there are " + std::to_string(factors.size()) + " factors; each row needs one";
    });
    detail::expect_present<typename Context::Space>(
        detail::rule_name<Rule>(), weighted.target,
        [&](auto row) { return row < factors.size() && factors.data[row] == 0; },
        "nn::weighted(nn::where_present(targets), factors), or a factor of 0, leaves such rows out of the loss");
    return detail::loss_of_target(context, rule, tokens, weighted.target, factor, {factors.data, {factors.size()}});
  };
  if constexpr (!detail::is_prediction<Prediction>())
    return {};
  else if constexpr (requires { prediction.tokens; })
    return loss(prediction);
  else
    return loss(detail::as_tokens(prediction));
}

/// Loss of a rule without targets: a penalty on the prediction, which may be sequences, rows or images.
template <class Context, kernel::LossOfPrediction Rule>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule,
                                               SequenceOf<Context> const& prediction, double factor = 1) {
  return detail::loss_of_elements(context, rule, prediction, factor, [](auto const& x) { return x; });
}
/// Loss of a rule without targets, over rows or images.
template <class Context, kernel::LossOfPrediction Rule, int Rank>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, VariableOf<Context, Rank> prediction,
                                               double factor = 1) {
  return elementwise_loss(context, rule, detail::as_tokens(prediction), factor);
}

/// Loss with one number as the target of every element, such as 1 for "real" in a GAN.
/// @throws ConfigError for a target that the rule rejects
template <class Context, class Rule, class Prediction, class Target>
requires(std::is_arithmetic_v<Target> && !kernel::LossOfPrediction<Rule> && !kernel::LossByColumn<Rule>)
    [[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, Prediction const& prediction,
                                                   Target target, double factor = 1) {
  if constexpr (requires { Rule::targets; })
    expect<ConfigError>(rule.takes(static_cast<double>(target)), [&] {
      return std::string(detail::rule_name<Rule>()) + ": the target is " + shortest(target) + ", " + Rule::targets;
    });
  return elementwise_loss(context, kernel::ConstantTarget<Rule>{rule, static_cast<double>(target)}, prediction, factor);
}

/// Rejects Variables as targets at compile time, because targets take no gradient.
template <class Context, class Rule, class Prediction, int Rank>
LossOf<Context> elementwise_loss(Context&, Rule const&, Prediction const&, VariableOf<Context, Rank> const&,
                                 double = 1) {
  static_assert(
      sizeof(Context) == 0,
      "Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value, which takes no "
      "gradient; if both sides should learn, use a penalty, nn::elementwise_loss(context, rule, "
      "nn::subtract(context, a, b)) with a rule without targets; see docs/how-to/add-a-layer.md");
  return {};
}
/// Rejects Sequences as targets at compile time.
template <class Context, class Rule, class Prediction>
LossOf<Context> elementwise_loss(Context&, Rule const&, Prediction const&, SequenceOf<Context> const&, double = 1) {
  static_assert(sizeof(Context) == 0,
                "Lockstep: the targets of a loss are numbers, and this is a Sequence: pass target.tokens.value, which "
                "takes no gradient; if both sides should learn, use a penalty, nn::elementwise_loss(context, rule, "
                "nn::subtract(context, a, b)) with a rule without targets; see docs/how-to/add-a-layer.md");
  return {};
}

namespace detail {

/// Whether targets of a loss, a view or a column, are integers.
template <class Target>
[[nodiscard]] consteval bool are_integers() {
  if constexpr (requires(Target const& target) { target.targets; })
    return are_integers<decltype(Target::targets)>();
  else if constexpr (requires(Target const& target) { target.factors; })
    return are_integers<decltype(Target::target)>();
  else if constexpr (requires(Target const& target) { target.values.data; })
    return std::is_integral_v<std::remove_pointer_t<decltype(Target::values.data)>>;
  else if constexpr (requires(Target const& target) { target.data; })
    return std::is_integral_v<std::remove_pointer_t<decltype(Target::data)>>;
  else
    return false;
}

/// Rejects class labels as targets of a distance at compile time.
template <class Target>
void expect_no_labels() {
  static_assert(
      !are_integers<Target>(),
      "Lockstep: a loss of distances (mean_squared_error, mean_absolute_error, huber_loss, quantile_loss) got "
      "integers as targets: for class labels use nn::cross_entropy; for counts make the member of the sample a float");
}

}  // namespace detail

}}}  // namespace lockstep::nn
