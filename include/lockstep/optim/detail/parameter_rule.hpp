// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// @throws ConfigError for a factor that is below zero or not finite
void expect_factor(double factor, char const* setting, std::string_view name);

/// A factor for each parameter, by name ("encoder.0.attention.query.weight") and shape, or a choice: true is 1, false
/// is 0. Holds a function, or a lambda that captures at most 16 bytes, so that optimizers stay plain values. `Rule`
/// derives from it; `Rule::setting` is the name of the optimizer's member.
template <class Rule>
class ParameterRule {
 public:
  using Factor = double (*)(std::string_view name, std::span<Index const> shape);
  using Choice = bool (*)(std::string_view name, std::span<Index const> shape);

  template <class Function>
  requires std::is_invocable_v<Function, std::string_view, std::span<Index const>>
  constexpr ParameterRule(Function function) {  // NOLINT(google-explicit-constructor): converts by design
    using Result = std::invoke_result_t<Function, std::string_view, std::span<Index const>>;
    static_assert(std::is_same_v<Result, double> || std::is_same_v<Result, bool>,
                  "Lockstep: a rule of parameters is a lambda that returns double or bool");
    if constexpr (std::convertible_to<Function, Factor>) {
      factor_ = function;
    } else if constexpr (std::convertible_to<Function, Choice>) {
      choice_ = function;
    } else {
      static_assert(
          std::is_trivially_copyable_v<Function> && sizeof(Function) <= sizeof(Captured) &&
              alignof(Function) <= alignof(double),
          "Lockstep: a rule of parameters has captured more than two numbers; it may hold 16 bytes, no string and "
          "no reference to a temporary; read the rest from constants");
      std::memcpy(captured_.bytes, &function, sizeof function);
      call_ = [](Captured const& captured, std::string_view name, std::span<Index const> shape) {
        return static_cast<double>((*reinterpret_cast<Function const*>(captured.bytes))(name, shape));
      };
    }
  }

  /// Rejects anything that is no function of a name and a shape at compile time.
  template <class Other>
  requires(!std::is_invocable_v<Other, std::string_view, std::span<Index const>> &&
           !std::is_base_of_v<ParameterRule,
                              Other>) constexpr ParameterRule(Other const&) {  // NOLINT(google-explicit-constructor):
                                                                               // in place of another conversion
    static_assert(sizeof(Other) == 0,
                  "Lockstep: an optimizer's `decays` and `rates` are functions of a parameter's name and shape: "
                  "[](std::string_view name, std::span<Index const> shape) { return 0.1; }; see "
                  "docs/reference/optimizer.md");
  }

  /// @throws ConfigError for a factor that is below zero or not finite
  [[nodiscard, gnu::cold]] double operator()(std::string_view name, std::span<Index const> shape) const {
    if (choice_) return choice_(name, shape) ? 1 : 0;
    auto const factor = call_ ? call_(captured_, name, shape) : factor_(name, shape);
    expect_factor(factor, Rule::setting, name);
    return factor;
  }

 private:
  struct Captured {
    alignas(double) std::byte bytes[16]{};
  };

  Factor factor_ = nullptr;
  Choice choice_ = nullptr;
  double (*call_)(Captured const&, std::string_view, std::span<Index const>) = nullptr;
  Captured captured_;
};

/// Returns a rule's factor for a parameter of a layout. Rejects members of an optimizer that are no rules at compile
/// time.
template <class Rule, class Entry>
[[nodiscard]] double factor_by(Rule const& rule, Entry const& entry) {
  constexpr bool is_rule = std::is_invocable_r_v<double, Rule const&, std::string_view, std::span<Index const>>;
  static_assert(is_rule,
                "Lockstep: an optimizer's `decays` is an optim::DecayRule, and its `rates` an optim::RateRule: "
                "functions of a parameter's name and shape; see docs/reference/optimizer.md");
  if constexpr (is_rule)
    return rule(entry.name, entry.shape);
  else
    return 1;
}

}}}  // namespace lockstep::optim::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/optim/detail/parameter_rule.ipp>
#endif
