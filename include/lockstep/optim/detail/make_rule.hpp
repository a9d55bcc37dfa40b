// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// Makes an optimizer's rule in the space of the step's scalars. Holds plain values and is constexpr, so that a device
/// can run it.
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

}}}  // namespace lockstep::optim::detail
