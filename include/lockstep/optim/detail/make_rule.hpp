// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim::detail {

/// Makes an optimizer's rule where the step's scalars lie. Plain values, and constexpr, so that a device can do it.
template <class Rule, class Options>
struct MakeRule {
  Options options;
  double weight_decay, rate;

  template <class Scalars>
  [[nodiscard]] constexpr Rule operator()(Scalars scalars) const {
    scalars.learning_rate *= rate;
    return Rule(options, scalars, weight_decay);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim::detail
