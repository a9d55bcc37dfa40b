// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/agreement_of.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void add_options(parallel::Agreement& agreement, FitOptions const& options,
                                      MetricNames const& metric_names) {
  for (auto const& name : metric_names.names()) agreement.add("metric of the evaluation", name);
  for (auto const& name : options.loss_parts) agreement.add("part of the loss", name);
  agreement.add(describe(options));
  agreement.add("trace", Index{options.trace != nullptr});
  agreement.add("schedule has a rule", Index{options.schedule.rule != nullptr});
}

}}}  // namespace lockstep::train::detail
