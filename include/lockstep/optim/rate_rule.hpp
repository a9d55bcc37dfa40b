// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

#include <lockstep/core/index.hpp>
#include <lockstep/optim/detail/parameter_rule.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Factor on the learning rate of each parameter, or whether it learns. With 0 a parameter never changes: neither
/// weight decay nor moments apply.
class RateRule : public detail::ParameterRule<RateRule> {
 public:
  static constexpr char const* setting = "rates";  ///< member of the optimizer that errors name

  using ParameterRule::ParameterRule;
  constexpr RateRule() : ParameterRule(same) {}

  /// Every parameter learns at the optimizer's rate.
  [[nodiscard]] static double same(std::string_view, std::span<Index const>) noexcept { return 1; }
};

/// Returns an optimizer's factor on the learning rate for a parameter of a layout.
template <class Optimizer, class Entry>
[[nodiscard]] double rate_of(Optimizer const& optimizer, Entry const& entry) {
  if (entry.frozen) return 0;
  if constexpr (requires { optimizer.rate_of(entry); })
    return optimizer.rate_of(entry);
  else if constexpr (requires { optimizer.rates; })
    return detail::factor_by(optimizer.rates, entry);
  else
    return 1;
}

}}}  // namespace lockstep::optim
