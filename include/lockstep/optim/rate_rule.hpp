// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/optim/detail/capturing.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// What multiplies the learning rate of a parameter, by name ("encoder.0.attention.query.weight") and shape: 0 for one
/// that stays as it is, weight decay and moments included. Holds a plain function, as DecayRule.
class RateRule {
 public:
  using Function = double (*)(std::string_view name, std::span<Index const> shape);

  template <std::convertible_to<Function> F>
  constexpr RateRule(F function) : rate_(function) {}  // NOLINT(google-explicit-constructor): stands for the function
  /// Says what it holds, of anything else.
  template <detail::Capturing<Function> F>
  constexpr RateRule(F const&) {  // NOLINT(google-explicit-constructor): as above
    detail::refuse_capturing<F>();
  }
  constexpr RateRule() = default;

  /// @throws ConfigError for a factor below zero, or none
  [[nodiscard]] double operator()(std::string_view name, std::span<Index const> shape) const {
    auto const rate = rate_(name, shape);
    if (rate >= 0 && std::isfinite(rate)) return rate;
    throw ConfigError("optimizer: `rates` gives " + std::to_string(rate) + " for the parameter \"" + std::string(name) +
                      "\"; it must be a finite number of at least 0");
  }

  /// All learn at the optimizer's rate.
  [[nodiscard]] static double same(std::string_view, std::span<Index const>) noexcept { return 1; }

 private:
  Function rate_ = same;
};

/// The factor of an optimizer for a parameter of a layout.
template <class Optimizer, class Entry>
[[nodiscard]] double rate_of(Optimizer const& optimizer, Entry const& entry) {
  if (entry.frozen) return 0;
  if constexpr (requires { optimizer.rates; }) return optimizer.rates(entry.name, entry.shape);
  return 1;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
