// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {
namespace detail {

/// Whether a rule of nn::rowwise_loss can be called, as a constant.
template <class Rule>
inline constexpr bool is_row_rule = requires(Rule const& rule, std::span<double const> outputs,
                                             std::span<double> slopes) {
  Loss<HostSpace>(rule(Index{}, outputs, slopes));
}
|| std::is_invocable_r_v<double, Rule const&, Index, std::span<double const>, std::span<double>>;

template <class Rule>
[[nodiscard]] Loss<HostSpace> loss_of_row(Rule const& rule, Index row, std::span<double const> outputs,
                                          std::span<double> slopes) {
  if constexpr (std::is_arithmetic_v<decltype(rule(row, outputs, slopes))>)
    return {static_cast<double>(rule(row, outputs, slopes)), 1};
  else
    return rule(row, outputs, slopes);
}

/// @throws RowError, naming the row and the first of its numbers that is not finite
[[noreturn, gnu::cold]] void refuse_row(Index row, std::span<double const> outputs, std::span<double const> slopes,
                                        Loss<HostSpace> const& loss);

/// @throws RowError if a rule made a number that is not finite from numbers that are
inline void expect_finite_row(Index row, std::span<double const> outputs, std::span<double const> slopes,
                              Loss<HostSpace> const& loss) {
  auto const finite = [](double x) { return std::isfinite(x); };
  if (finite(loss.sum) && finite(loss.weight) && std::all_of(slopes.begin(), slopes.end(), finite)) return;
  // If the model is the cause, the trainer reports it.
  if (std::all_of(outputs.begin(), outputs.end(), finite)) refuse_row(row, outputs, slopes, loss);
}

}  // namespace detail

/// Loss of all outputs for one sample: of the numbers of a row, an image, or the tokens of a sequence without padding.
/// Calls `rule(row, outputs, slopes)` once for each sample of the batch. `outputs` are the sample's numbers as a
/// std::span<double const>, token after token. The rule writes the derivative of the loss by each output into `slopes`,
/// a std::span<double> of equal size that begins as zeros, and returns the loss: an nn::Loss<HostSpace>, sum and
/// weight, or a number, whose weight is 1. It reads targets from the batch by `row`. A sample that must not count
/// returns {0, 0} and leaves the slopes 0. `factor` multiplies sums and slopes, not weights.
///
/// Threads of the context call the rule for several rows at the same time, so it must not change anything else. On the
/// CPU only.
/// @shape prediction.tokens [slots, width]
/// @determinism bitwise, for any number of threads: sums are added up in the order of the rows
/// @throws RowError (at Contract::normal) for a row whose outputs are finite and whose loss, weight or slope is not
template <class Context, class Rule>
[[nodiscard]] LossOf<Context> rowwise_loss(Context& context, Rule const& rule, SequenceOf<Context> const& prediction,
                                           double factor = 1) {
  constexpr bool on_host = Context::Space::host_accessible, callable = detail::is_row_rule<Rule>;
  static_assert(on_host,
                "Lockstep: nn::rowwise_loss calls a function of the CPU for each row; on a GPU, compose the loss of "
                "library functions, or use nn::elementwise_loss; see docs/how-to/add-a-layer.md");
  static_assert(callable,
                "Lockstep: the rule of nn::rowwise_loss is called as constant with (Index row, std::span<double const> "
                "outputs, std::span<double> slopes), and returns an nn::Loss<HostSpace>{sum, weight} or a number; see "
                "docs/how-to/add-a-layer.md");
  if constexpr (!on_host || !callable) {
    return {};
  } else {
    auto const& layout = prediction.layout;
    auto const width = prediction.width();
    auto const sums = context.template temporary<double>(Extents<1>{layout.rows}),
               weights = context.template temporary<double>(Extents<1>{layout.rows});
    Staging work(context);
    auto const x = work.read_for_loss(prediction.tokens.value);
    auto const gradient = work.loss_gradient(prediction.tokens);
    auto const outputs = work.template temporary<double>(x.extent), slopes = work.template temporary<double>(x.extent);
    if (gradient && gradient.write == Write::overwrite) std::fill_n(gradient.data, x.size(), 0);  // padding included
    auto const per_row = std::max<Index>(layout.rows == 0 ? 0 : x.size() / layout.rows, 1);
    context.stream().pool().for_ranges(layout.rows, std::max<Index>(256 / per_row, 1), [&](Index row, Index end) {
      for (; row < end; ++row) {
        auto const first = layout.start(row) * width, count = layout.tokens(row) * width;
        std::copy_n(x.data + first, count, outputs.data + first);
        std::fill_n(slopes.data + first, count, 0);
        auto const size = static_cast<std::size_t>(count);
        auto const loss =
            detail::loss_of_row(rule, row, {outputs.data + first, size}, std::span{slopes.data + first, size});
        if constexpr (checks(Contract::normal))
          detail::expect_finite_row(row, {outputs.data + first, size}, {slopes.data + first, size}, loss);
        sums(row) = factor * loss.sum;
        weights(row) = loss.weight;
        if (!gradient) continue;
        for (Index i = first; i < first + count; ++i)
          gradient.data[i] += static_cast<LossOperand<Context>>(factor * slopes.data[i]);
      }
    });
    return LossOf<Context>::of(context, sums, weights);
  }
}
/// Loss of the numbers of each row, or of each image.
/// @shape prediction [rows, …, width]
template <class Context, class Rule, int Rank>
[[nodiscard]] LossOf<Context> rowwise_loss(Context& context, Rule const& rule, VariableOf<Context, Rank> prediction,
                                           double factor = 1) {
  auto const rows = prediction.extent(0), width = rows == 0 ? Index{0} : prediction.value.size() / rows;
  return rowwise_loss(context, rule, detail::as_tokens(prediction.reshape(Extents<2>{rows, width})), factor);
}
/// Rejects predictions at compile time that are no Variable and no Sequence.
template <class Context, class Rule, class Prediction>
requires(!detail::LayerOutput<Prediction>) LossOf<Context> rowwise_loss(Context&, Rule const&, Prediction const&,
                                                                        double = 1) {
  static_assert(
      detail::LayerOutput<Prediction>,
      "Lockstep: a loss takes a prediction, a Variable or a Sequence; if predict returns several in a struct, "
      "pass one of its members; see docs/reference/model.md");
  return {};
}

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/loss/rowwise_loss.ipp>
#endif
