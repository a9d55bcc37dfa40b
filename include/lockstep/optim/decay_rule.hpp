// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

#include <lockstep/core/index.hpp>
#include <lockstep/optim/detail/parameter_rule.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Factor on the weight decay of each parameter, or whether it decays.
class DecayRule : public detail::ParameterRule<DecayRule> {
 public:
  static constexpr char const* setting = "decays";  ///< member of the optimizer that errors name

  using ParameterRule::ParameterRule;
  constexpr DecayRule() : ParameterRule(all) {}

  /// Every parameter: PyTorch's default.
  [[nodiscard]] static bool all(std::string_view, std::span<Index const>) noexcept { return true; }
  /// Parameters of two or more axes: excludes biases and the scales of norms.
  [[nodiscard]] static bool matrices(std::string_view, std::span<Index const> shape) noexcept {
    return shape.size() >= 2;
  }
};

/// Returns an optimizer's factor on the weight decay of a parameter of a layout; 1 without a rule `decays`.
template <class Optimizer, class Entry>
[[nodiscard]] double decay_of([[maybe_unused]] Optimizer const& optimizer, [[maybe_unused]] Entry const& entry) {
  if constexpr (requires { optimizer.decay_of(entry); })
    return optimizer.decay_of(entry);
  else if constexpr (requires { optimizer.decays; })
    return detail::factor_by(optimizer.decays, entry);
  else
    return 1;
}

}}}  // namespace lockstep::optim
