// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/loss/cross_entropy_options.hpp>
#include <lockstep/kernel/loss/detail/cross_entropy_rows.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Softmax and negative log likelihood in one pass over the logits.
template <class Space>
struct CrossEntropy : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct CrossEntropy<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes losses, weights and gradient. Let y = labels[r], p = softmax(logits[r]), w the class weights and s the
  /// label smoothing. Then losses[r] = -factor * factors[r] * ((1 - s) w[y] log p[y] + s / classes * sum over c of w[c]
  /// log p[c]), and weights[r] = w[y]. Both are 0 for rows that are padding or ignored. Finite logits never overflow.
  /// gradient = the gradient of the sum of the losses, or it is added.
  /// @shape logits [layout.slots, classes]   @shape labels [layout.slots], each in [0, classes) or ignored
  /// @shape factors [layout.slots], or a null view: each is 1
  /// @shape losses, weights [layout.slots], overwritten
  /// @shape gradient as logits, and with `overwrite` may be their memory; null is skipped
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree   @throws ConfigError for a smoothing outside [0, 1]
  /// @throws DataError (at Contract::normal) for a label outside the classes
  template <class Scalar, class Label>
  static void forward_backward(Stream stream, SequenceLayout<HostSpace> layout, CrossEntropyOptions const& options,
                               Matrix<Scalar const> logits, Vector<Label> labels, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {});

 private:
  static constexpr Index elements_per_task = 4096;

  template <class Label>
  static void check(SequenceLayout<HostSpace> const& layout, CrossEntropyOptions const& options, Extents<2> logits,
                    Vector<Label> labels) {
    expect<ShapeError>(logits[0] == layout.slots && labels.size() == layout.slots, [&] {
      return "cross_entropy: logits are " + to_string(logits) + " and there are " + std::to_string(labels.size()) +
             " labels; each row of logits needs one";
    });
    options.check(logits[1]);
    if constexpr (checks(Contract::normal)) {
      for (Index r = 0; r < logits[0]; ++r) {
        auto const label = static_cast<Index>(labels.data[r]);
        if ((label >= 0 && label < logits[1]) || label == options.ignored || !layout.is_token(r)) continue;
        auto const row = layout.row_of(r), token = r - layout.start(row);
        throw RowError(
            "cross_entropy: " + (layout.length > 1 ? "token " + std::to_string(token) + " of " : std::string()) +
                "row " + std::to_string(row) + " of the batch has label " + std::to_string(label) + ", outside [0, " +
                std::to_string(logits[1]) +
                "); number the classes from 0, or give the model as many outputs as there are classes",
            row);
      }
    }
  }
};

// Not inline, so that programs that link the library use its code for the usual types.
template <class Scalar, class Label>
void CrossEntropy<HostSpace>::forward_backward(Stream stream, SequenceLayout<HostSpace> layout,
                                               CrossEntropyOptions const& options, Matrix<Scalar const> logits,
                                               Vector<Label> labels, Vector<double> losses, Vector<double> weights,
                                               Matrix<Scalar> gradient, Write write, Vector<float const> factors) {
  check(layout, options, logits.extent, labels);
  options.check_factors(factors, logits.extent);
  auto const classes = logits.extent[1];
  detail::CrossEntropyRows<Scalar, Label> const rows{layout,      {options, classes}, logits.data,   labels.data,
                                                     losses.data, weights.data,       gradient.data, write,
                                                     factors.data};
  stream.pool().for_ranges(
      layout.slots, std::max<Index>(1, elements_per_task / std::max<Index>(1, classes)),
      [=](Index begin, Index end) { with_best_instructions([=](auto vectors) { rows.run(vectors, begin, end); }); });
}

#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_CROSS_ENTROPY(Scalar, Label)                        \
  decltype(CrossEntropy<HostSpace>::forward_backward<Scalar, Label>) \
      CrossEntropy<HostSpace>::forward_backward<Scalar, Label>
extern template LOCKSTEP_CROSS_ENTROPY(float, std::int32_t const);
extern template LOCKSTEP_CROSS_ENTROPY(float, std::int64_t const);
extern template LOCKSTEP_CROSS_ENTROPY(double, std::int32_t const);
extern template LOCKSTEP_CROSS_ENTROPY(double, std::int64_t const);
#endif

}}}  // namespace lockstep::kernel
