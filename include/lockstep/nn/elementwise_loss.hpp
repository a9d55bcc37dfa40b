// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <iterator>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/elementwise_loss.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/detail/expect_present.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/same_lengths.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

namespace detail {

/// The loss, given targets by what `target_of(prediction)` makes of the prediction's numbers as the kernel reads them.
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
  Kernel::template forward_backward<LossOperand<Context>,
                                    std::remove_const_t<std::remove_pointer_t<decltype(target.data)>>>(
      context.stream(), prediction.layout, rule, static_cast<typename Context::Real>(factor), x, target, sums, weights,
      {gradient.data, extent}, gradient.write, factors, present);
  return LossOf<Context>::of(context, sums, weights);
}

/// The same of targets; factors and who is present may be null views.
template <class Context, class Rule, class Target, int Rank>
[[nodiscard]] LossOf<Context> loss_of_targets(Context& context, Rule const& rule, SequenceOf<Context> const& prediction,
                                              TensorView<Target, Rank, typename Context::Space> target, double factor,
                                              TensorView<float const, 1, typename Context::Space> factors,
                                              TensorView<bool const, 1, typename Context::Space> present = {}) {
  static_assert(std::is_arithmetic_v<Target>, "Lockstep: a loss of single elements takes numbers as targets");
  auto const extent = prediction.tokens.value.extent;
  expect<ShapeError>(extent[0] == prediction.layout.slots && target.size() == elements(extent), [&] {
    return std::string(Rule::name) + ": the prediction is " + to_string(extent) + " and the target " +
           to_string(target.extent) + "; each element of the prediction needs one of the target";
  });
  if constexpr (kernel::LossByColumn<Rule>)
    expect<ShapeError>(std::ssize(rule.columns) == extent[1], [&] {
      return std::string(Rule::name) + ": the prediction is " + to_string(extent) + " and there are " +
             std::to_string(std::ssize(rule.columns)) + " weights of its columns; each column needs one";
    });
  return loss_of_elements(
      context, rule, prediction, factor, [&](auto const&) { return target.reshape(extent); }, factors, present);
}

}  // namespace detail

/// Sum over the tokens' elements of what `rule`, one of kernel/loss_rules.hpp or one of your own, makes of the
/// prediction and its target, times `factor`; the weight is the number of elements. Padding counts nothing. While
/// recording, the gradient of the sum is left beside the prediction at once: one pass serves forward and backward.
/// @shape prediction.tokens [slots, width]   @shape target [slots, width], any extents with as many numbers, outermost
/// first
/// @determinism bitwise, for any number of threads
/// @throws ShapeError when target has another number of elements, or the rule another number of columns
/// @throws RowError (at Contract::normal, on the host) for a target that the rule does not take, with its place
template <class Context, class Rule, class Target, int Rank>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule,
                                               SequenceOf<Context> const& prediction,
                                               TensorView<Target, Rank, typename Context::Space> target,
                                               double factor = 1) {
  return detail::loss_of_targets(context, rule, prediction, target, factor, {});
}

/// The same for one vector per row, or per place of a picture.
/// @shape prediction [rows, …, width]   @shape target as many numbers, outermost first
template <class Context, class Rule, class Target, int PredictionRank, int Rank>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule,
                                               VariableOf<Context, PredictionRank> prediction,
                                               TensorView<Target, Rank, typename Context::Space> target,
                                               double factor = 1) {
  return elementwise_loss(context, rule, detail::as_tokens(prediction), target, factor);
}

/// The same for a column of a batch: anything that holds the targets as `.values`.
/// @throws ShapeError (on the host) when a sequence has more or fewer targets than tokens; RowError for a row without a
/// target, as of a std::optional
template <class Context, class Rule, class Prediction, class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, Prediction const& prediction,
                                               Column const& target, double factor = 1) {
  expect_same_lengths(Rule::name, prediction, target);
  detail::expect_present<typename Context::Space>(
      Rule::name, target, [](auto) { return false; }, "nn::where_present(targets) leaves such rows out of the loss");
  return elementwise_loss(context, rule, prediction, target.values, factor);
}

/// Targets of which some are missing: what `where_present` returns.
template <class Column>
struct WherePresent {
  Column targets;
};
/// In place of the targets of any loss of elements, a column of std::optional numbers: rows without one count nothing,
/// in the loss and its weight, and get the gradient zero.
template <class Column>
requires requires(Column const& column) { column.present; }
[[nodiscard]] WherePresent<Column> where_present(Column const& targets) { return {targets}; }

namespace detail {
/// Of targets that a column or a view has for each token, or a column for some.
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
    return std::string(Rule::name) + ": the prediction has " + std::to_string(rows) + " rows and there are " +
           std::to_string(known.targets.present.size()) + " targets; each row needs one";
  });
  return loss_of_targets(context, rule, prediction, known.targets.values, factor, factors, known.targets.present);
}
}  // namespace detail

/// @shape prediction [rows, 1]
template <class Context, class Rule, class Column>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, VariableOf<Context, 2> prediction,
                                               WherePresent<Column> const& known, double factor = 1) {
  return detail::loss_of_target(context, rule, detail::as_tokens(prediction), known, factor);
}

/// Targets with a factor for each row, place or token: what `weighed` returns.
template <class Target, class Factors>
struct Weighed {
  Target target;
  Factors factors;
};
/// In place of the targets of any loss of elements: the loss of each row or token times its factor, such as how much a
/// sample counts. Factors are on loss and gradient and not on the weight, as cross_entropy's are. The targets may be
/// what `where_present` returns.
/// @shape factors [rows] or [slots]: a column or a view of floats
template <class Target, class Factors>
[[nodiscard]] Weighed<Target, Factors> weighed(Target const& target, Factors const& factors) {
  return {target, factors};
}
/// @throws ShapeError when there are more or fewer factors than rows or tokens; RowError for a row without a target
/// whose factor is not 0
template <class Context, class Rule, class Prediction, class Target, class Factors>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, Prediction const& prediction,
                                               Weighed<Target, Factors> const& weighed, double factor = 1) {
  expect_same_lengths(Rule::name, prediction, weighed.target);
  expect_same_lengths(Rule::name, prediction, weighed.factors);
  auto const factors = detail::numbers_of(weighed.factors);
  static_assert(std::is_same_v<std::remove_const_t<std::remove_pointer_t<decltype(factors.data)>>, float>,
                "Lockstep: nn::weighed takes a float for each row as its factors");
  auto const loss = [&](auto const& tokens) {
    expect<ShapeError>(factors.size() == tokens.layout.slots, [&] {
      return std::string(Rule::name) + ": the prediction has " + std::to_string(tokens.layout.slots) +
             " rows and there are " + std::to_string(factors.size()) + " factors; each row needs one";
    });
    detail::expect_present<typename Context::Space>(
        Rule::name, weighed.target, [&](auto row) { return row < factors.size() && factors.data[row] == 0; },
        "nn::weighed(nn::where_present(targets), factors), or a factor of 0, leaves such rows out of the loss");
    return detail::loss_of_target(context, rule, tokens, weighed.target, factor, {factors.data, {factors.size()}});
  };
  if constexpr (requires { prediction.tokens; })
    return loss(prediction);
  else
    return loss(detail::as_tokens(prediction));
}

/// The same of a rule without targets: a penalty of what the model makes, sequences, rows or pictures.
template <class Context, kernel::LossOfPrediction Rule>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule,
                                               SequenceOf<Context> const& prediction, double factor = 1) {
  return detail::loss_of_elements(context, rule, prediction, factor, [](auto const& x) { return x; });
}
template <class Context, kernel::LossOfPrediction Rule, int Rank>
[[nodiscard]] LossOf<Context> elementwise_loss(Context& context, Rule const& rule, VariableOf<Context, Rank> prediction,
                                               double factor = 1) {
  return elementwise_loss(context, rule, detail::as_tokens(prediction), factor);
}

/// Targets take no gradient: says what takes their place.
template <class Context, class Rule, class Prediction, int Rank>
LossOf<Context> elementwise_loss(Context&, Rule const&, Prediction const&, VariableOf<Context, Rank> const&,
                                 double = 1) {
  static_assert(
      sizeof(Context) == 0,
      "Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value, which takes no "
      "gradient; where both sides are to learn, take a penalty, nn::elementwise_loss(context, rule, "
      "nn::subtract(context, a, b)) with a rule without targets; see docs/how-to/add-a-layer.md");
  return {};
}
template <class Context, class Rule, class Prediction>
LossOf<Context> elementwise_loss(Context&, Rule const&, Prediction const&, SequenceOf<Context> const&, double = 1) {
  static_assert(sizeof(Context) == 0,
                "Lockstep: the targets of a loss are numbers, and this is a Sequence: pass target.tokens.value, which "
                "takes no gradient; where both sides are to learn, take a penalty, nn::elementwise_loss(context, rule, "
                "nn::subtract(context, a, b)) with a rule without targets; see docs/how-to/add-a-layer.md");
  return {};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
