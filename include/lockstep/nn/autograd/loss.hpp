// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/reduction/sum.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A loss as a sum and a weight, never a mean. Sums and weights add up exactly for any split of the batch over
/// micro-batches and ranks. Gradients are gradients of the sum; the optimizer divides by the weight of the whole step.
template <class Space>
struct Loss;

/// Loss in a context's space: the result of models and losses.
template <class Context>
using LossOf = Loss<typename Context::Space>;

/// Rejects operators at compile time and explains how to combine losses.
template <class Space>
Loss<Space> operator+(Loss<Space> const& a, Loss<Space> const&) {
  static_assert(!std::is_same_v<Space, Space>,
                "Lockstep: losses on the same batch are joined by a.with_auxiliary(b), which keeps the weight of a; "
                "losses of other samples by a += b; see docs/how-to/add-a-layer.md");
  return a;
}
/// Rejects a factor at compile time.
template <class Space, class Factor>
requires std::is_arithmetic_v<Factor> Loss<Space>
operator*(Factor, Loss<Space> const& loss) {
  static_assert(
      !std::is_same_v<Space, Space>,
      "Lockstep: pass the factor of a loss to the function that computes it, so that its gradient is scaled too: "
      "nn::cross_entropy(context, logits, labels, {.factor = 0.5}); see docs/how-to/add-a-layer.md");
  return loss;
}
/// Rejects a factor at compile time.
template <class Space, class Factor>
requires std::is_arithmetic_v<Factor> Loss<Space>
operator*(Loss<Space> const& loss, Factor factor) { return factor * loss; }
/// Rejects a quotient at compile time.
template <class Space, class Number>
requires std::is_arithmetic_v<Number> Loss<Space>
operator/(Loss<Space> const& loss, Number) {
  static_assert(!std::is_same_v<Space, Space>,
                "Lockstep: a loss is a sum with its weight, and the trainer divides by the weight of all ranks: return "
                "what nn::cross_entropy(context, logits, labels) returns; see docs/how-to/add-a-layer.md");
  return loss;
}

/// Loss on the CPU: sum and weight as numbers.
template <>
struct Loss<HostSpace> {
  double sum = 0;     ///< of the losses of all samples or tokens
  double weight = 0;  ///< number of samples or tokens, or sum of their weights

  /// Adds up the results of a kernel for the parts of a batch, in order.
  /// @shape sums, weights [parts]
  template <class Context>
  [[nodiscard]] static Loss of(Context const&, TensorView<double const, 1, HostSpace> sums,
                               TensorView<double const, 1, HostSpace> weights) noexcept {
    Loss loss;
    for (Index part = 0; part < sums.size(); ++part) loss += {sums.data[part], weights.data[part]};
    return loss;
  }

  /// Adds the loss of other samples of the batch: sums and weights.
  Loss& operator+=(Loss const& other) noexcept {
    sum += other.sum;
    weight += other.weight;
    return *this;
  }
  /// Returns this loss plus an auxiliary loss on the same samples: adds the sums and keeps this loss's weight. Pass the
  /// auxiliary loss's factor where it is computed, so that its gradient includes the factor.
  [[nodiscard]] Loss with_auxiliary(Loss const& other) const noexcept { return {sum + other.sum, weight}; }
  /// Returns sum / weight; 0 without weight.
  [[nodiscard]] double mean() const noexcept { return weight == 0 ? 0 : sum / weight; }
};

/// A loss on a device: sum and weight stay there, so that no forward pass waits. Valid as long as the micro-batch's
/// activations; the code that runs the model adds it to its own totals.
template <>
struct Loss<CudaSpace> {
  double* totals = nullptr;  ///< [2], on the device: sum, weight
  void* context = nullptr;   ///< the context that made it
  /// Returns new totals: a, plus the first `count` totals of b (1: the sum only, 2: sum and weight).
  double* (*joined)(void* context, double const* a, double const* b, Index count) = nullptr;

  /// @shape sums, weights [parts]
  template <class Context>
  [[nodiscard]] static Loss of(Context& context, TensorView<double const, 1, CudaSpace> sums,
                               TensorView<double const, 1, CudaSpace> weights) {
    using Space = typename Context::Space;
    auto* const totals = context.template temporary<double>(Extents<1>{2}).data;
    kernel::Sum<Space>::run_both(context.stream(), sums, weights, totals);
    return {totals, &context, [](void* self, double const* a, double const* b, Index count) {
              auto& c = *static_cast<Context*>(self);
              auto* const to = c.template temporary<double>(Extents<1>{2}).data;
              Extents<1> const added{count}, rest{2 - count};
              kernel::BinaryOperation<Space>::template forward<kernel::Plus, double>(c.stream(), {a, added}, {b, added},
                                                                                     {to, added});
              kernel::BinaryOperation<Space>::template backward<kernel::FirstOperand, double>(
                  c.stream(), {a + count, rest}, {}, {to + count, rest}, Write::overwrite);
              return to;
            }};
  }

  /// Adds the loss of other samples of the batch. A default-constructed loss counts as zero.
  Loss& operator+=(Loss const& other) {
    if (!totals) return *this = other;
    if (other.totals) totals = joined(context, totals, other.totals, 2);
    return *this;
  }
  /// Returns this loss plus an auxiliary loss on the same samples; keeps this loss's weight.
  [[nodiscard]] Loss with_auxiliary(Loss const& other) const {
    return {joined(context, totals, other.totals, 1), context, joined};
  }
};

}}}  // namespace lockstep::nn
