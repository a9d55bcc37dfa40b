// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <concepts>
#include <limits>

#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/logistic.hpp>
#include <lockstep/kernel/detail/masked.hpp>
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
    return detail::selected(x < 0, static_cast<Scalar>(slope) * x, x);
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return detail::selected(y <= 0, static_cast<Scalar>(slope) * dy, dy);
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
    constexpr auto infinity = std::numeric_limits<Scalar>::infinity();
    constexpr auto maximum = sizeof(Scalar) == sizeof(float) ? Scalar(88) : infinity;
    return detail::selected(x > maximum, infinity, detail::exp(detail::selected(x > maximum, maximum, x)));
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

/// The Gaussian error linear unit by the hyperbolic tangent, as in GPT-2: x (1 + tanh(u)) / 2 with
/// u = sqrt(2 / pi) (x + 0.044715 x^3). It differs from the exact unit by at most 5e-4.
struct GeluTanh {
  static constexpr char const* name = "kernel::GeluTanh";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return at(x).value;
  }
  /// Returns value and slope at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<Scalar> at(Scalar x) const noexcept {
    constexpr auto twice_root = static_cast<Scalar>(1.5957691216057308L);  // 2 sqrt(2 / pi)
    constexpr auto cubic = static_cast<Scalar>(0.044715L);
    // Between -30 and 30 the cube stays finite.
    auto const z = detail::selected(x < -30, Scalar{-30}, detail::selected(x > 30, Scalar{30}, x));
    auto const s = detail::logistic(twice_root * (z + cubic * (z * z * z)));  // (1 + tanh(u)) / 2
    return {x * s.at, s.at + z * (s.at * s.mirrored) * (twice_root * (1 + 3 * cubic * (z * z)))};
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar slope) const noexcept {
    return dy * slope;
  }
};

/// The exponential linear unit: x where x > 0, and alpha (e^x - 1) elsewhere, for an alpha of at least 0.
struct Elu {
  static constexpr char const* name = "kernel::Elu";  ///< for messages
  double alpha = 1;                                   ///< negative limit, at least 0
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    // e^x - 1 = 2 t / (1 - t), without cancellation
    Scalar const t = detail::tanh(detail::selected(x < 0, x, Scalar{0}) / 2);
    return detail::selected(x <= 0, static_cast<Scalar>(alpha) * (2 * t / (1 - t)), x);
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return detail::selected(y <= 0, dy * (y + static_cast<Scalar>(alpha)), dy);
  }
};

/// A smooth rectified linear unit: log(1 + e^(beta x)) / beta, for a beta above 0.
struct Softplus {
  static constexpr char const* name = "kernel::Softplus";  ///< for messages
  double beta = 1;                                         ///< sharpness, above 0
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return at(x).value;
  }
  /// Returns value and slope at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<Scalar> at(Scalar x) const noexcept {
    auto const sharpness = static_cast<Scalar>(beta);
    auto const s = detail::logistic(sharpness * x);
    return {(x < 0 ? Scalar{0} : x) + s.softplus_of_minus_magnitude / sharpness, s.at};
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar slope) const noexcept {
    return dy * slope;
  }
};

/// x tanh(log(1 + e^x)).
struct Mish {
  static constexpr char const* name = "kernel::Mish";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return at(x).value;
  }
  /// Returns value and slope at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<Scalar> at(Scalar x) const noexcept {
    // With e = e^-|x|, the tangent is e (e + 2) / (e (e + 2) + 2) for x < 0, and (1 + 2 e) / (1 + 2 e + 2 e^2) else.
    Scalar const e = detail::exp(x < 0 ? x : -x);
    Scalar const above = x < 0 ? e * (e + 2) : 1 + 2 * e, more = x < 0 ? Scalar{2} : 2 * e * e, sum = above + more;
    Scalar const tangent = above / sum, squares = (2 * above + more) * more / (sum * sum);  // 1 - tangent^2
    return {x * tangent, tangent + x * squares * detail::logistic(x).at};
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar slope) const noexcept {
    return dy * slope;
  }
};

/// min(max(0, x), 6), as in MobileNetV2. A NaN stays NaN and passes dy.
struct Relu6 {
  static constexpr char const* name = "kernel::Relu6";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return x < 0 ? Scalar{0} : x > 6 ? Scalar{6} : x;
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return y <= 0 || y >= 6 ? Scalar{0} : dy;
  }
};

/// A piecewise linear logistic function: min(max(0, x / 6 + 1/2), 1), as in MobileNetV3. A NaN stays NaN.
struct Hardsigmoid {
  static constexpr char const* name = "kernel::Hardsigmoid";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return x <= -3 ? Scalar{0} : x >= 3 ? Scalar{1} : (x + 3) / 6;
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar y) const noexcept {
    return y <= 0 || y >= 1 ? Scalar{0} : dy / 6;
  }
};

/// x times its Hardsigmoid, as in MobileNetV3.
struct Hardswish {
  static constexpr char const* name = "kernel::Hardswish";  ///< for messages
  /// Returns the value at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x) const noexcept {
    return at(x).value;
  }
  /// Returns value and slope at x.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<Scalar> at(Scalar x) const noexcept {
    return {x <= -3  ? Scalar{0}
            : x >= 3 ? x
                     : x * (x + 3) / 6,
            x <= -3  ? Scalar{0}
            : x >= 3 ? Scalar{1}
                     : (2 * x + 3) / 6};
  }
  /// Returns the gradient of x from dy and what the forward pass kept.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar backward(Scalar dy, Scalar slope) const noexcept {
    return dy * slope;
  }
};

}}}  // namespace lockstep::kernel
