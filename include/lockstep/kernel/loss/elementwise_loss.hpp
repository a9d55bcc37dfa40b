// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/loss/loss_rules.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Loss of each element of the prediction with a target, by a rule of loss_rules.hpp. Computes the sum and its gradient
/// in one pass.
template <class Space>
struct ElementwiseLoss : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct ElementwiseLoss<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Returns the number of slots that share one element of `losses` and `weights`.
  [[nodiscard]] static constexpr Index slots_per_chunk(Index width) noexcept {
    return std::max<Index>(1, elements_per_chunk / std::max<Index>(1, width));
  }
  /// Returns the number of elements of `losses` and `weights`.
  [[nodiscard]] static constexpr Index chunks(Index slots, Index width) noexcept {
    return (slots + slots_per_chunk(width) - 1) / slots_per_chunk(width);
  }

  /// Sums each chunk of slots over its present tokens: losses = factor * the sum of the rule's values, and weights =
  /// their number. gradient = factor * the rule's slope and zero elsewhere, or it is added. Reads nothing of other
  /// slots. A rule of only the prediction reads no target; pass any view with as many elements.
  /// @shape prediction, target [layout.slots, width]   @shape losses, weights [chunks(layout.slots, width)],
  /// overwritten
  /// @shape gradient as prediction; null is skipped   @shape rule.columns [width], if the rule has them
  /// @shape factors [layout.slots], of value and slope of each slot, or null   @shape present [layout.slots], or null:
  /// all are
  /// @determinism bitwise, for any number of threads
  /// @throws RowError (at Contract::normal) for a target that the rule does not accept
  /// @source direct from the definition
  template <class Scalar, class Other, class Rule>
  static void forward_backward(Stream stream, SequenceLayout<HostSpace> layout, Rule rule, Scalar factor,
                               Matrix<Scalar const> prediction, Matrix<Other const> target, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {}, Vector<bool const> present = {}) {
    auto const counts = [=](Index slot) { return layout.is_token(slot) && (!present.data || present.data[slot]); };
    if constexpr (checks(Contract::normal) && requires { Rule::targets; }) check(layout, rule, target, counts);
    auto const width = prediction.extent[1], per_chunk = slots_per_chunk(width);
    stream.pool().for_ranges(layout.slots, per_chunk, [=](Index begin, Index end) {
      double sum = 0;
      Index tokens = 0;
      for (Index slot = begin, next; slot < end; slot = next) {
        bool const token = counts(slot);
        for (next = slot + 1; next < end && counts(next) == token;) ++next;
        auto const at = slot * width, count = (next - slot) * width;
        auto* const to = gradient.data ? gradient.data + at : nullptr;
        if (token) {
          sum += run(rule, prediction.data + at, target.data + at, width, count, factor, to, write,
                     factors.data ? factors.data + slot : nullptr);
          tokens += next - slot;
        } else if (to && write == Write::overwrite) {
          std::fill_n(to, count, Scalar{0});
        }
      }
      losses.data[begin / per_chunk] = sum * static_cast<double>(factor);
      weights.data[begin / per_chunk] = static_cast<double>(tokens * width);
    });
  }

 private:
  static constexpr Index elements_per_chunk = 4096, block = 256;

  /// Processes whole slots. Sums are of type Scalar within a block and in double across blocks.
  template <class Scalar, class Other, class Rule>
  static double run(Rule rule, Scalar const* prediction, Other const* target, Index width, Index count, Scalar factor,
                    Scalar* gradient, Write write, float const* factors) {
    return with_best_instructions([=](auto vectors) {
      Scalar values[block], slopes[block];
      [[maybe_unused]] Scalar columns[block];
      double total = 0;
      for (Index first = 0; first < count; first += block) {
        Index const here = std::min(block, count - first);
        if constexpr (LossByColumn<Rule>)
          for (Index i = 0, column = first % width; i < here; ++i, column = column + 1 == width ? 0 : column + 1)
            columns[i] = static_cast<Scalar>(rule.columns[static_cast<std::size_t>(column)]);
        for (Index i = 0; i < here; ++i) {
          LossAt<Scalar> at;
          if constexpr (LossOfPrediction<Rule>)
            at = rule(prediction[first + i]);
          else if constexpr (LossByColumn<Rule>)
            at = rule(prediction[first + i], static_cast<Scalar>(target[first + i]), columns[i]);
          else
            at = rule(prediction[first + i], static_cast<Scalar>(target[first + i]));
          values[i] = at.value;
          slopes[i] = at.slope;
        }
        if (factors)
          for (Index i = 0, slot = first / width, column = first % width; i < here; ++i) {
            values[i] *= static_cast<Scalar>(factors[slot]);
            slopes[i] *= static_cast<Scalar>(factors[slot]);
            if (++column == width) {
              column = 0;
              ++slot;
            }
          }
        total += static_cast<double>(detail::sum(vectors, values, here));
        if (!gradient) continue;
        Scalar* const to = gradient + first;
        detail::write_each(0, here, to, write, [&](Index i) { return factor * slopes[i]; });
      }
      return total;
    });
  }

  template <class Rule, class Other, class Counts>
  static void check(SequenceLayout<HostSpace> const& layout, Rule const& rule, Matrix<Other const> target,
                    Counts const& counts) {
    auto const width = target.extent[1];
    for (Index i = 0; i < target.size(); ++i) {
      auto const slot = i / width;
      if (rule.takes(static_cast<double>(target.data[i])) || !counts(slot)) continue;
      auto const row = layout.row_of(slot), token = slot - layout.start(row);
      throw RowError(std::string(Rule::name) + ": element " + std::to_string(i % width) +
                         (layout.length > 1 ? " of token " + std::to_string(token) : std::string()) + " of row " +
                         std::to_string(row) + " of the batch has target " + shortest(target.data[i]) + ", " +
                         Rule::targets,
                     row);
    }
  }
};

}}}  // namespace lockstep::kernel
