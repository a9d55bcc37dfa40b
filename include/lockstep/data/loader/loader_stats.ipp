// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/loader/loader_stats.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_COLD_INLINE double LoaderStats::busy_seconds() const noexcept {
  return read_seconds + plan_seconds + write_seconds + finish_seconds;
}

LOCKSTEP_COLD_INLINE std::string LoaderStats::verdict() const {
  if (delivered == 0 || elapsed_seconds <= 0) return "no batch has been requested yet";
  auto const waits = percent(wait_seconds / elapsed_seconds);
  if (wait_seconds <= 0.02 * elapsed_seconds) {
    return "the loader keeps up: training waits for data " + waits + " of the time";
  }
  if (workers == 0) {
    return "training makes its own batches, " + waits + " of the time; give the loader a worker";
  }
  auto const stage = read_seconds >= 0.5 * busy_seconds()    ? "reading samples"
                     : write_seconds >= 0.5 * busy_seconds() ? "writing them into batches"
                                                             : "making batches";
  auto const busy = busy_seconds() + idle_seconds > 0 ? busy_seconds() / (busy_seconds() + idle_seconds) : 0;
  auto const who = "training waits for data " + waits + " of the time; " +
                   (workers == 1 ? "the worker is" : "the " + std::to_string(workers) + " workers are") + " busy " +
                   percent(busy) + ", most of it with " + stage;
  return who +
         (busy >= 0.9 ? "; add workers, or make samples cheaper to read" : "; raise `prefetch`: loading waits too");
}

}}}  // namespace lockstep::data
