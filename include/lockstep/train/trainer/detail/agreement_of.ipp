// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/agreement_of.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE void add_options(parallel::Agreement& agreement, FitOptions const& options,
                                 MetricNames const& metric_names) {
  for (auto const& name : metric_names.names()) agreement.add("metric of the evaluation", name);
  agreement.add("epochs", options.epochs);
  agreement.add("largest number of steps", options.max_steps);
  agreement.add("batches in a step", options.accumulation);
  agreement.add("largest gradient norm", options.clip_norm);
  agreement.add("start of the loss scale", options.loss_scaler.start);
  agreement.add("growth of the loss scale", options.loss_scaler.growth);
  agreement.add("backoff of the loss scale", options.loss_scaler.backoff);
  agreement.add("steps until the loss scale grows", options.loss_scaler.growth_interval);
  agreement.add("steps between checks of replicas", options.check_replicas_every);
  agreement.add("epochs between evaluations", options.evaluate_every_epochs);
  agreement.add("steps between evaluations", options.evaluate_every_steps);
  agreement.add("patience", options.patience);
  agreement.add("patience of the plateau", options.plateau.patience);
  agreement.add("factor of the plateau", options.plateau.factor);
  agreement.add("least factor of the plateau", options.plateau.min_factor);
  agreement.add("timed products", Index{options.timed_products});
  agreement.add("dry run", Index{options.dry_run});
  agreement.add("trace", Index{options.trace != nullptr});
  agreement.add("measure of the best evaluation", options.best_by);
  agreement.add("steps of warm-up", options.schedule.warmup_steps);
  agreement.add("steps of the schedule", options.schedule.total_steps);
  agreement.add("kind of schedule", static_cast<Index>(options.schedule.kind));
  agreement.add("least factor of the schedule", options.schedule.min_factor);
  agreement.add("schedule has a rule", Index{options.schedule.rule != nullptr});
}

}}}  // namespace lockstep::train::detail
