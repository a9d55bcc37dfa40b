// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/logs/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE RunRecord::RunRecord() = default;
LOCKSTEP_COLD_INLINE RunRecord::~RunRecord() = default;
LOCKSTEP_COLD_INLINE RunRecord::RunRecord(RunRecord const&) = default;
LOCKSTEP_COLD_INLINE RunRecord::RunRecord(RunRecord&&) noexcept = default;
LOCKSTEP_COLD_INLINE RunRecord& RunRecord::operator=(RunRecord const&) = default;
LOCKSTEP_COLD_INLINE RunRecord& RunRecord::operator=(RunRecord&&) noexcept = default;

LOCKSTEP_INLINE void RunRecord::add_step(double seconds, Index all_samples) {
  step_seconds.push_back(seconds);
  training_seconds += seconds;
  samples = all_samples;
}

LOCKSTEP_COLD_INLINE double RunRecord::samples_per_second() const noexcept {
  return training_seconds == 0 ? 0 : static_cast<double>(samples - samples_before) / training_seconds;
}

LOCKSTEP_COLD_INLINE Startup RunRecord::startup() const {
  Startup out{.seconds = rehearsal_seconds, .shapes = rehearsed_shapes};
  if (step_seconds.size() < 8) return out;
  auto const median = step_quantile(0.5);
  auto const first = std::min(step_seconds.size() / 2, std::size_t{1000});
  for (std::size_t i = 0; i < first; ++i)
    if (step_seconds[i] > 2 * median) {
      out.seconds += step_seconds[i] - median;
      ++out.steps;
    }
  return out;
}

LOCKSTEP_COLD_INLINE double RunRecord::samples_per_second_after_startup() const {
  auto const seconds = training_seconds - startup().seconds;
  return seconds > 0 ? static_cast<double>(samples - samples_before) / seconds : 0;
}

LOCKSTEP_INLINE double RunRecord::ms_per_step(double seconds) const noexcept {
  return steps == resumed() ? 0 : seconds * 1e3 / static_cast<double>(steps - resumed());
}

LOCKSTEP_COLD_INLINE double RunRecord::step_quantile(double q) const {
  if (step_seconds.empty()) return 0;
  auto sorted = step_seconds;
  auto const at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
  return sorted[at];
}

}}}  // namespace lockstep::train
