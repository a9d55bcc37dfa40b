// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <limits>

#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/logistic.hpp>
#include <lockstep/kernel/detail/normal_distribution.hpp>
#include <lockstep/kernel/detail/tanh.hpp>

/// What Elementwise is made of: activations as function objects. y(x) is the value; backward takes dy and what forward
/// kept: y itself or, of rules that have `at`, the slope, which comes with the value. They are called on the host and
/// on devices, so they are constexpr, and T is float or double; but for Gelu, whose integral devices have a function of
/// their own for: see detail::on_device. All have a name for messages.
namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// An activation at one element, and its derivative.
template <class T>
struct ActivationAt {
  T value, slope;
};

/// A rule that is shorter to write: its operator gives value and slope at once, and nothing else is needed.
template <class Rule>
concept ActivationWithSlope = requires(Rule const& rule, float x) {
  { rule(x) } -> std::same_as<ActivationAt<float>>;
};
/// The same as Elementwise takes it.
template <ActivationWithSlope Rule>
struct BySlope {
  static constexpr char const* name = Rule::name;
  Rule rule;
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    return rule(x).value;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<T> at(T x) const noexcept {
    return rule(x);
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T slope) const noexcept {
    return dy * slope;
  }
};

/// The rectified linear unit: max(0, x). A nan stays one, and passes dy.
struct Relu {
  static constexpr char const* name = "kernel::Relu";
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    return x < 0 ? T{0} : x;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T y) const noexcept {
    return y <= 0 ? T{0} : dy;
  }
};

/// The same with a slope below zero, 0 or more: x where x > 0, and slope x elsewhere. A nan stays one, and passes dy.
struct LeakyRelu {
  static constexpr char const* name = "kernel::LeakyRelu";
  double slope = 0.01;
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    return x < 0 ? static_cast<T>(slope) * x : x;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T y) const noexcept {
    return y <= 0 ? static_cast<T>(slope) * dy : dy;
  }
};

/// A multiple: factor x
struct Multiple {
  static constexpr char const* name = "kernel::Multiple";
  double factor = 1;
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    return static_cast<T>(factor) * x;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T) const noexcept {
    return static_cast<T>(factor) * dy;
  }
};

/// The logistic function: 1 / (1 + e^-x)
struct Sigmoid {
  static constexpr char const* name = "kernel::Sigmoid";
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    return detail::logistic(x).at;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T y) const noexcept {
    return dy * (y * (1 - y));
  }
};

/// The hyperbolic tangent
struct Tanh {
  static constexpr char const* name = "kernel::Tanh";
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    return detail::tanh(x);
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T y) const noexcept {
    return dy * ((1 - y) * (1 + y));
  }
};

/// The exponential: e^x. Of floats, 0 below -87.33 and infinity above 88.
struct Exp {
  static constexpr char const* name = "kernel::Exp";
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    T const most = sizeof(T) == sizeof(float) ? T(88) : std::numeric_limits<T>::infinity();
    T const y = detail::exp(x > most ? most : x);
    return x > most ? std::numeric_limits<T>::infinity() : y;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T y) const noexcept {
    return dy * y;
  }
};

/// The sigmoid linear unit, swish: x / (1 + e^-x). Its slope is not told by its value, which has a minimum.
struct Silu {
  static constexpr char const* name = "kernel::Silu";
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T operator()(T x) const noexcept {
    return at(x).value;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr ActivationAt<T> at(T x) const noexcept {
    auto const s = detail::logistic(x);
    return {x * s.at, s.at * (1 + x * s.mirrored)};
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T slope) const noexcept {
    return dy * slope;
  }
};

/// The Gaussian error linear unit, exact: x Phi(x), Phi the integral of the standard normal distribution. Its slope
/// comes from the same exponential.
struct Gelu {
  static constexpr char const* name = "kernel::Gelu";
  template <class T>
  [[nodiscard, gnu::always_inline]] T operator()(T x) const noexcept {
    return x * detail::normal_distribution(x).integral;
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] ActivationAt<T> at(T x) const noexcept {
    auto const normal = detail::normal_distribution(x);
    return {x * normal.integral, normal.integral + x * normal.density};
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] constexpr T backward(T dy, T slope) const noexcept {
    return dy * slope;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
