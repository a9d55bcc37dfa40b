// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <limits>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/loss/cross_entropy_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// The options in the form that rows need. With z = logits - their largest, a row's loss is
/// total(y) * log(sum over c of exp z[c]) - at_label(y) * z[y] - each * sum over c of w[c] z[c].
struct CrossEntropyTerms {
  Index classes, ignored;
  float const* class_weights;  // or null
  double label_share, each, each_total;

  CrossEntropyTerms(CrossEntropyOptions const& options, Index count)
      : classes(count),
        ignored(options.ignored.value_or(std::numeric_limits<Index>::min())),
        class_weights(options.class_weights.empty() ? nullptr : options.class_weights.data()),
        label_share(options.factor * (1 - options.label_smoothing)),
        each(options.factor * options.label_smoothing / static_cast<double>(std::max<Index>(1, count))) {
    double sum = class_weights ? 0 : static_cast<double>(count);
    for (float weight : options.class_weights) sum += static_cast<double>(weight);
    each_total = each * sum;
  }
  [[gnu::always_inline]] constexpr double weight(Index label) const noexcept {
    return class_weights ? static_cast<double>(class_weights[label]) : 1;
  }
  [[gnu::always_inline]] constexpr double at_label(Index label) const noexcept { return label_share * weight(label); }
  [[gnu::always_inline]] constexpr double total(Index label) const noexcept { return at_label(label) + each_total; }
  /// Returns the value that smoothing subtracts from a class's gradient, for any label.
  template <class Scalar>
  [[gnu::always_inline]] constexpr Scalar share(Index c) const noexcept {
    return class_weights ? static_cast<Scalar>(each) * static_cast<Scalar>(class_weights[c])
                         : static_cast<Scalar>(each);
  }
  /// Returns the weight of class c if the sample's share of it is q.
  template <class Scalar>
  [[gnu::always_inline]] constexpr Scalar share(Index c, Scalar q) const noexcept {
    Scalar const smooth = static_cast<Scalar>(label_share) * q + static_cast<Scalar>(each);
    return class_weights ? static_cast<Scalar>(class_weights[c]) * smooth : smooth;
  }
  /// Returns the loss. `log_total` is the logarithm of the sum of exp z, `z` the label's value, and `spread` the sum of
  /// w[c] z[c].
  [[gnu::always_inline]] constexpr double loss(Index label, double log_total, double z, double spread) const noexcept {
    double const of_label = total(label) * log_total - at_label(label) * z;
    return each == 0 ? of_label : of_label - each * spread;
  }
};

}}}  // namespace lockstep::kernel::detail
