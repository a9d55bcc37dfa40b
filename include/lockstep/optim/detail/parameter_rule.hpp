// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim::detail {

/// A factor for each parameter, by name ("encoder.0.attention.query.weight") and shape, or a choice: yes is 1, no is 0.
/// Holds a plain function, so that optimizers stay plain values: a lambda without captures will do. `Rule` derives from
/// it, and its `setting` is what optimizers call it.
template <class Rule>
class ParameterRule {
 public:
  using Factor = double (*)(std::string_view name, std::span<Index const> shape);
  using Choice = bool (*)(std::string_view name, std::span<Index const> shape);

  template <class F>
  requires std::is_invocable_v<F, std::string_view, std::span<Index const>>
  constexpr ParameterRule(F function) {  // NOLINT(google-explicit-constructor): stands for it
    if constexpr (std::convertible_to<F, Factor>)
      factor_ = function;
    else if constexpr (std::convertible_to<F, Choice>)
      choice_ = function;
    else
      static_assert(!std::is_same_v<F, F>,
                    "Lockstep: a rule of parameters is a lambda without captures that returns double or bool: let it "
                    "read what it needs from constants or global variables");
  }

  /// @throws ConfigError for a factor that is below zero or not finite
  [[nodiscard]] double operator()(std::string_view name, std::span<Index const> shape) const {
    if (choice_) return choice_(name, shape) ? 1 : 0;
    auto const factor = factor_(name, shape);
    if (factor >= 0 && std::isfinite(factor)) return factor;
    throw ConfigError("optimizer: `" + std::string(Rule::setting) + "` gives " + std::to_string(factor) +
                      " for the parameter \"" + std::string(name) + "\"; it must be a finite number of at least 0");
  }

 private:
  Factor factor_ = nullptr;
  Choice choice_ = nullptr;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim::detail
