// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/optim/muon.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

LOCKSTEP_COLD_INLINE void Muon::check() const {
  detail::expect_setting(name(), "learning_rate", learning_rate);
  detail::expect_setting(name(), "momentum", momentum, 1);
  detail::expect_setting(name(), "weight_decay", weight_decay);
  detail::expect_setting(name(), "epsilon", epsilon);
  auto const refuse = [](std::string const& setting, double value, char const* rule) {
    throw ConfigError("Muon: " + setting + " is " + shortest(value) + "; it must be " + rule);
  };
  if (epsilon == 0) refuse("epsilon", epsilon, "above 0: a gradient of zeros is divided by it");
  if (iterations < 1 || iterations > 99) refuse("iterations", iterations, "from 1 to 99");
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    if (!std::isfinite(coefficients[i]))
      refuse("coefficients[" + std::to_string(i) + "]", coefficients[i], "a finite number");
}

LOCKSTEP_COLD_INLINE void Muon::check_parameter(std::string_view parameter, std::span<Index const> shape) {
  if (shape.size() == 2) return;
  std::string extents;
  for (auto const extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  throw ConfigError("Muon: the parameter \"" + std::string(parameter) + "\" is [" + extents +
                    "]; Muon updates matrices, which have two axes; give it to another optimizer with "
                    "optim::Partitioned{optim::Muon{…}, optim::AdamW{…}, rule}");
}

LOCKSTEP_INLINE double Muon::adjustment_of(Index rows, Index columns) const noexcept {
  auto const m = static_cast<double>(rows), n = static_cast<double>(columns);
  switch (adjustment) {
    case Adjustment::match_rms_adamw:
      return 0.2 * std::sqrt(std::max(m, n));
    case Adjustment::spectral_unclamped:
      return std::sqrt(m / n);
    case Adjustment::original:
      break;
  }
  return std::sqrt(std::max(1.0, m / n));
}

}}}  // namespace lockstep::optim
