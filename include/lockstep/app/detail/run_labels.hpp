// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/options.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/scaling/bottleneck.hpp>
#include <lockstep/scaling/profile_of.hpp>
#include <lockstep/train/logs/run_json.hpp>
#include <lockstep/train/logs/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Returns the labels of run.json in addition to the run's record.
[[nodiscard]] inline train::RunLabels run_labels(Options const& options, char const* precision,
                                                 train::RunRecord const& record) {
  train::RunLabels labels;
  labels.example = options.program;
  labels.backend = options.backend == Backend::cuda ? CudaSpace::name : HostSpace::name;
  labels.precision = precision;
  labels.command = options.command_line;
  for (auto const& [flag, text] : options.settings) labels.settings.emplace_back(flag.substr(2), text);
  auto const bottleneck = scaling::find_bottleneck(scaling::profile_of(record));
  labels.bound = bottleneck.bound;
  labels.summary = bottleneck.summary;
  return labels;
}

}}}  // namespace lockstep::app::detail
