// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/log.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// The logistic function s(x) = 1 / (1 + e^-x), and the integrals of s(x) and of -s(-x).
template <class Scalar>
struct Logistic {
  Scalar at, mirrored;                    ///< s(x) and s(-x) = 1 - s(x)
  Scalar softplus, softplus_of_negative;  ///< log(1 + e^x) and log(1 + e^-x)
  Scalar softplus_of_minus_magnitude;     ///< log(1 + e^-|x|)
};

/// Returns all of them from one exponential of -|x|, so nothing overflows. Each is accurate to a few units in its last
/// place: neither s nor its complement is a difference. NaN stays NaN. Free of branches and calls in float.
/// @source log(1 + e) = log(u) + log(1 + c / u) with u = 1 + e rounded and c the rounding error: c / u is so small that
/// log(1 + c / u) = c / u
template <class Scalar>
[[nodiscard, gnu::always_inline]] constexpr Logistic<Scalar> logistic(Scalar x) noexcept {
  Scalar const magnitude = x < 0 ? -x : x, e = detail::exp(-magnitude), u = 1 + e;
  Scalar const rest = detail::log(u) + (e - (u - 1)) / u;  // log(1 + e^-|x|)
  // Each selection has a condition of its own: g++ makes a branch of two that share one.
  return {(x < 0 ? e : Scalar{1}) / u, (magnitude > x ? Scalar{1} : e) / u, rest + (magnitude + x) / 2,
          rest + (magnitude - x) / 2, rest};
}

}}}  // namespace lockstep::kernel::detail
