// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// What a DataLoader has done since it was made, to say who waits for whom.
struct LoaderStats {
  double read_seconds = 0, plan_seconds = 0, write_seconds = 0, finish_seconds = 0;  ///< all workers together
  double idle_seconds = 0;        ///< workers had nothing to do, all together
  double wait_seconds = 0;        ///< `next` waited for a batch
  double elapsed_seconds = 0;     ///< since the first `start`
  Index delivered = 0;            ///< micro-steps
  Index samples = 0;              ///< in them
  Index ready = 0;                ///< micro-steps that stood ready when `next` was called, summed over its calls
  Index slots = 0;                ///< micro-steps that the ring can hold
  int workers = 0;                ///< threads at present
  Index bytes = 0;                ///< that the batches in the ring need, at most so far
  Index skipped = 0;              ///< samples left out by OnFailure::skip
  Index substituted = 0;          ///< samples replaced by OnFailure::substitute
  std::string last_failure = {};  ///< why, of the latest of these

  [[nodiscard]] double busy_seconds() const noexcept {
    return read_seconds + plan_seconds + write_seconds + finish_seconds;
  }

  /// Who waits for whom, and what to do, in a sentence.
  [[nodiscard]] std::string verdict() const {
    if (delivered == 0 || elapsed_seconds <= 0) return "no batch has been asked for yet";
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

 private:
  [[nodiscard]] static std::string percent(double part) { return std::to_string(std::lround(100 * part)) + " %"; }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
