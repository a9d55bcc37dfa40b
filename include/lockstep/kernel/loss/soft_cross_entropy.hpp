// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/loss/cross_entropy_options.hpp>
#include <lockstep/kernel/loss/detail/cross_entropy_terms.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CrossEntropy for rows with a share of each class instead of one label.
template <class Space>
struct SoftCrossEntropy : detail::NotIncluded<Space> {};

/// Checks the options and the numbers of logits, shares and factors.
/// @throws ShapeError unless each logit has a share and each row a factor (or there are none), or for another number of
/// class weights
/// @throws ConfigError for a smoothing outside [0, 1], an invalid weight, or an ignored label
template <class Factors>
void check_soft_cross_entropy(Index slots, CrossEntropyOptions const& options, Extents<2> logits, Index shares,
                              Factors const& factors) {
  expect<ShapeError>(logits[0] == slots && shares == elements(logits), [&] {
    return "cross_entropy: logits are " + to_string(logits) + " and there are " + std::to_string(shares) +
           " class shares; each logit needs one";
  });
  options.check(logits[1]);
  options.check_factors(factors, logits);
  expect<ConfigError>(!options.ignored, [&] {
    return "cross_entropy: label " + std::to_string(*options.ignored) +
           " is ignored, but the targets are class shares; give the rows that should add nothing the factor 0";
  });
}

/// CPU version of the primary template.
template <>
struct SoftCrossEntropy<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes losses, weights and gradient. Let q = shares[r], p = softmax(logits[r]), w the class weights and s the
  /// label smoothing. Then losses[r] = -factor * factors[r] * sum over c of w[c] ((1 - s) q[c] + s / classes) log p[c],
  /// and weights[r] = 1. Both are 0 for padding. gradient = the gradient of the sum of the losses, or it is added.
  /// @shape logits, shares [layout.slots, classes]   @shape factors [layout.slots], or a null view: each is 1
  /// @shape losses, weights [layout.slots], overwritten
  /// @shape gradient as logits, and with `overwrite` may be their memory; null is skipped
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree   @throws ConfigError for a smoothing outside [0, 1], or an ignored
  /// label
  /// @throws RowError (at Contract::normal) for a share that is negative or not finite
  template <class Scalar, class Share>
  static void forward_backward(Stream stream, SequenceLayout<HostSpace> layout, CrossEntropyOptions const& options,
                               Matrix<Scalar const> logits, Vector<Share const> shares, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {}) {
    check_soft_cross_entropy(layout.slots, options, logits.extent, shares.size(), factors);
    if constexpr (checks(Contract::normal)) check(layout, logits.extent[1], shares.data);
    auto const classes = logits.extent[1];
    detail::CrossEntropyTerms const terms(options, classes);
    stream.pool().for_ranges(
        layout.slots, std::max<Index>(1, elements_per_task / std::max<Index>(1, classes)), [=](Index begin, Index end) {
          with_best_instructions([=](auto vectors) {
            for (Index r = begin; r < end; ++r) {
              auto* const dx = gradient.data ? gradient.data + r * classes : nullptr;
              bool const counts = layout.is_token(r);
              double const by = factors.data ? static_cast<double>(factors.data[r]) : 1;
              weights.data[r] = counts ? 1 : 0;
              losses.data[r] =
                  counts ? row(vectors, terms, by, logits.data + r * classes, shares.data + r * classes, dx, write) : 0;
              if (!counts && dx && write == Write::overwrite) std::fill_n(dx, classes, Scalar{0});
            }
          });
        });
  }

 private:
  static constexpr Index elements_per_task = 4096, block = 256;

  /// Returns the loss of a row. Sums are of type Scalar within a block of classes and in double across blocks.
  template <std::size_t bytes, class Scalar, class Share>
  [[gnu::always_inline]] static double row(Vectors<bytes> vectors, detail::CrossEntropyTerms const& terms, double by,
                                           Scalar const* x, Share const* q, Scalar* dx, Write write) noexcept {
    auto const classes = terms.classes;
    Scalar const maximum = detail::largest(vectors, x, classes);
    Scalar parts[block];
    double total = 0, all = 0, dot = 0;
    for (Index c = 0; c < classes; c += block) {
      auto const here = std::min(block, classes - c);
      for (Index i = 0; i < here; ++i) parts[i] = terms.share(c + i, static_cast<Scalar>(q[c + i]));
      all += static_cast<double>(detail::sum(vectors, parts, here));
      for (Index i = 0; i < here; ++i) parts[i] *= x[c + i] - maximum;
      dot += static_cast<double>(detail::sum(vectors, parts, here));
      for (Index i = 0; i < here; ++i) parts[i] = detail::exp(x[c + i] - maximum);
      total += static_cast<double>(detail::sum(vectors, parts, here));
    }
    if (dx) {
      auto const scale = static_cast<Scalar>(by * all / total), share = static_cast<Scalar>(by);
      for (Index c = 0; c < classes; ++c) {
        Scalar const slope = detail::exp(x[c] - maximum) * scale - share * terms.share(c, static_cast<Scalar>(q[c]));
        dx[c] = write == Write::add ? dx[c] + slope : slope;
      }
    }
    return by * (all * std::log(total) - dot);
  }

  template <class Share>
  static void check(SequenceLayout<HostSpace> const& layout, Index classes, Share const* shares) {
    for (Index r = 0; r < layout.slots; ++r)
      for (Index c = 0; c < classes; ++c) {
        auto const share = static_cast<double>(shares[r * classes + c]);
        if ((share >= 0 && std::isfinite(share)) || !layout.is_token(r)) continue;
        auto const row = layout.row_of(r);
        throw RowError("cross_entropy: row " + std::to_string(row) + " of the batch gives class " + std::to_string(c) +
                           " the share " + shortest(share) +
                           "; shares must be finite and at least 0, and the shares of a row normally sum to 1",
                       row);
      }
  }
};

}}}  // namespace lockstep::kernel
