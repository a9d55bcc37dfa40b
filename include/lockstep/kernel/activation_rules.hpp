// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <limits>

#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/logistic.hpp>
#include <lockstep/kernel/detail/normal_distribution.hpp>
#include <lockstep/kernel/detail/tanh.hpp>

// Activation rules of Elementwise: function objects for the host and devices. y(x) returns the value. `backward` takes
// dy and what the forward pass kept: y itself, or the slope for rules that have `at`, which returns value and slope.
// Rules are constexpr except Gelu, whose integral has a function of its own on devices, see detail::device_rule.
// Scalar is float or double. Each rule has a name for error messages.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Value of an activation at one element, and its derivative there.
template <class Scalar>
struct ActivationAt {
  Scalar value;  ///< at x
  Scalar slope;  ///< derivative at x
};

/// A rule in short form: its call operator returns value and slope, and it needs no other members.
template <class Rule>
concept ActivationWithSlope = requires(Rule const& rule, float x) {
  { rule(x) } -> std::same_as<ActivationAt<float>>;
};
/// Adapts an ActivationWithSlope to the interface of Elementwise.
template <ActivationWithSlope Rule>
struct ActivationAdapter {
  static constexpr char const* name = Rule::name;  ///< for messages
  Rule rule;                                       ///< to adapt
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return rule(x).value;
  }
  /// Returns value and slope at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<Scalar> at(Scalar x) const noexcept {
    return rule(x);
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar slope) const noexcept {
    return dy * slope;
  }
};

/// The rectified linear unit: max(0, x). A NaN stays NaN and passes dy.
struct Relu {
  static constexpr char const* name = "kernel::Relu";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return x < 0 ? Scalar{0} : x;
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return y <= 0 ? Scalar{0} : dy;
  }
};

/// The leaky rectified linear unit: x where x > 0, and slope x elsewhere, for a slope of at least 0. A NaN stays NaN
/// and passes dy.
struct LeakyRelu {
  static constexpr char const* name = "kernel::LeakyRelu";  ///< for messages
  double slope = 0.01;                                      ///< of negative x, at least 0
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return x < 0 ? static_cast<Scalar>(slope) * x : x;
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return y <= 0 ? static_cast<Scalar>(slope) * dy : dy;
  }
};

/// A multiple: factor x.
struct Scale {
  static constexpr char const* name = "kernel::Scale";  ///< for messages
  double factor = 1;                                    ///< of x
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return static_cast<Scalar>(factor) * x;
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar) const noexcept {
    return static_cast<Scalar>(factor) * dy;
  }
};

/// The logistic function: 1 / (1 + e^-x).
struct Sigmoid {
  static constexpr char const* name = "kernel::Sigmoid";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return detail::logistic(x).at;
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return dy * (y * (1 - y));
  }
};

/// The hyperbolic tangent.
struct Tanh {
  static constexpr char const* name = "kernel::Tanh";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return detail::tanh(x);
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return dy * ((1 - y) * (1 + y));
  }
};

/// The exponential: e^x. A float below -87.33 gives 0, and one above 88 gives infinity.
struct Exp {
  static constexpr char const* name = "kernel::Exp";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    Scalar const maximum = sizeof(Scalar) == sizeof(float) ? Scalar(88) : std::numeric_limits<Scalar>::infinity();
    Scalar const y = detail::exp(x > maximum ? maximum : x);
    return x > maximum ? std::numeric_limits<Scalar>::infinity() : y;
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return dy * y;
  }
};

/// The sigmoid linear unit (swish): x / (1 + e^-x). Keeps the slope, because the function has a minimum and its value
/// does not determine the slope.
struct Silu {
  static constexpr char const* name = "kernel::Silu";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return at(x).value;
  }
  /// Returns value and slope at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<Scalar> at(Scalar x) const noexcept {
    auto const s = detail::logistic(x);
    return {x * s.at, s.at * (1 + x * s.mirrored)};
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar slope) const noexcept {
    return dy * slope;
  }
};

/// The exact Gaussian error linear unit: x Phi(x), where Phi is the integral of the standard normal distribution. Value
/// and slope share one exponential.
struct Gelu {
  static constexpr char const* name = "kernel::Gelu";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] Scalar operator()(Scalar x) const noexcept {
    return x * detail::normal_distribution(x).integral;
  }
  /// Returns value and slope at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] ActivationAt<Scalar> at(Scalar x) const noexcept {
    auto const normal = detail::normal_distribution(x);
    return {x * normal.integral, normal.integral + x * normal.density};
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar slope) const noexcept {
    return dy * slope;
  }
};

}}}  // namespace lockstep::kernel
