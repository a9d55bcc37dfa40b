// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>

#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/kernel/detail/logistic.hpp>

// Rules of ElementwiseLoss: function objects that return the loss of one prediction x with one target t. A rule has a
// name for error messages. If a target can be outside its range, it also has `takes` and `targets`. It is called on
// the host and on devices, so it is constexpr, and Scalar is float or double. A rule with `columns` gets the value of
// the element's column as a third argument. A rule that takes only x has no targets.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Loss at one element, and its derivative with respect to the prediction.
template <class Scalar>
struct LossAt {
  Scalar value;  ///< at x
  Scalar slope;  ///< derivative at x
};

/// A rule with a number for each column of the prediction: columns is [width], on the host. Devices get a copy.
template <class Rule>
concept LossByColumn = requires(Rule& rule) {
  { rule.columns } -> std::same_as<std::span<float const>&>;
};

/// A rule without targets: a penalty of the prediction itself.
template <class Rule>
concept LossOfPrediction = requires(Rule const& rule, float x) {
  { rule(x) } -> std::same_as<LossAt<float>>;
};

/// (x - t)^2.
struct SquaredError {
  static constexpr char const* name = "mean_squared_error";  ///< for messages
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar x, Scalar t) const noexcept {
    Scalar const off = x - t;
    return {off * off, 2 * off};
  }
};

/// |x - t|, with slope 0 where they are equal.
struct AbsoluteError {
  static constexpr char const* name = "mean_absolute_error";  ///< for messages
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar x, Scalar t) const noexcept {
    Scalar const off = x - t;
    return {off < 0 ? -off : off, off > 0 ? Scalar{1} : off < 0 ? Scalar{-1} : off};  // 0 or NaN
  }
};

/// Pinball loss of a quantile q: q (t - x) below the target, and (1 - q) (x - t) above, with slope 0 where they are
/// equal.
struct QuantileLoss {
  static constexpr char const* name = "quantile_loss";  ///< for messages
  double quantile = 0.5;                                ///< q, between 0 and 1
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar x, Scalar t) const noexcept {
    Scalar const q = static_cast<Scalar>(quantile), off = x - t;
    Scalar const slope = off > 0 ? 1 - q : off < 0 ? -q : off;  // 0 or NaN
    return {slope * off, slope};
  }
};

/// off^2 / 2 where off = |x - t| is at most delta, and delta (off - delta / 2) beyond.
struct HuberLoss {
  static constexpr char const* name = "huber_loss";  ///< for messages
  double delta = 1;                                  ///< difference from which on the loss is linear, above 0
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar x, Scalar t) const noexcept {
    Scalar const maximum = static_cast<Scalar>(delta), off = x - t;
    Scalar const slope = off > maximum ? maximum : off < -maximum ? -maximum : off;
    return {slope * (off - slope / 2), slope};
  }
};

/// -(p t log s(x) + (1 - t) log(1 - s(x))) with s(x) = 1 / (1 + e^-x) and p the positive weight.
struct BinaryCrossEntropy {
  static constexpr char const* name = "binary_cross_entropy_with_logits";  ///< for messages
  /// End of the message about a refused target.
  static constexpr char const* targets = "outside [0, 1]; give 0 or 1, or the probability of 1";
  double positive_weight = 1;  ///< factor on the part of t
  /// Returns whether t may be a target.
  template <class Scalar>
  [[nodiscard]] static constexpr bool takes(Scalar t) noexcept {
    return t >= 0 && t <= 1;
  }
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar x, Scalar t) const noexcept {
    return of(x, t, static_cast<Scalar>(positive_weight));
  }
  /// Returns loss and slope for a positive weight.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr LossAt<Scalar> of(Scalar x, Scalar t, Scalar weight) noexcept {
    auto const at = detail::logistic(x);
    Scalar const ones = weight * t;
    return {ones * at.softplus_of_negative + (1 - t) * at.softplus, (1 - t) * at.at - ones * at.mirrored};
  }
};

/// BinaryCrossEntropy with a positive weight for each column.
struct BinaryCrossEntropyByColumn {
  static constexpr char const* name = BinaryCrossEntropy::name;  ///< for messages
  /// End of the message about a refused target.
  static constexpr char const* targets = BinaryCrossEntropy::targets;
  std::span<float const> columns;  ///< [width], positive weights
  /// Returns whether t may be a target.
  template <class Scalar>
  [[nodiscard]] static constexpr bool takes(Scalar t) noexcept {
    return BinaryCrossEntropy::takes(t);
  }
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar x, Scalar t,
                                                                        Scalar weight) const noexcept {
    return BinaryCrossEntropy::of(x, t, weight);
  }
};

/// A rule with one target for all elements, as a rule without targets.
template <class Rule>
struct ConstantTarget {
  static constexpr char const* name = Rule::name;  ///< for messages
  Rule rule;                                       ///< takes a prediction and a target
  double target;                                   ///< of every element
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar x) const noexcept {
    return rule(x, static_cast<Scalar>(target));
  }
};

/// KL divergence of N(m, 1) from the standard normal distribution: m^2 / 2.
struct KlDivergenceOfMean {
  static constexpr char const* name = "kl_to_standard_normal";  ///< for messages
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar m) const noexcept {
    return {m * m / 2, m};
  }
};

/// KL divergence of N(0, e^2s) from the standard normal distribution: (e^2s - 1) / 2 - s.
struct KlDivergenceOfLogDeviation {
  static constexpr char const* name = KlDivergenceOfMean::name;  ///< for messages
  /// Returns loss and slope at the prediction x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr LossAt<Scalar> operator()(Scalar s) const noexcept {
    Scalar const slope = Exp{}(2 * s) - 1;
    return {slope / 2 - s, slope};
  }
};

}}}  // namespace lockstep::kernel
