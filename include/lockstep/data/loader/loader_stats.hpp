// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// A sample that a DataLoader skipped or replaced.
struct SampleFailure {
  Index sample = 0;         ///< its index in the dataset
  std::string reason = {};  ///< its name, and the message of the exception
};

/// Counters and times of a DataLoader since its construction, to find whether training or data loading is the
/// bottleneck.
struct LoaderStats {
  double read_seconds = 0;        ///< time in which workers read samples, sum over all workers
  double plan_seconds = 0;        ///< time in which workers planned batches, sum over all workers
  double write_seconds = 0;       ///< time in which workers wrote samples into batches, sum over all workers
  double finish_seconds = 0;      ///< time in which workers finished batches, sum over all workers
  double idle_seconds = 0;        ///< time in which workers had nothing to do, sum over all workers
  double wait_seconds = 0;        ///< time in which `next` waited for a batch
  double elapsed_seconds = 0;     ///< since the first `start`
  Index delivered = 0;            ///< micro-steps
  Index samples = 0;              ///< in the delivered micro-steps
  Index ready = 0;                ///< micro-steps that were ready when `next` was called, summed over its calls
  Index slots = 0;                ///< micro-steps that the ring can hold
  int workers = 0;                ///< current number of threads
  Index bytes = 0;                ///< memory of the batches in the ring, maximum so far
  Index skipped = 0;              ///< samples left out by OnFailure::skip
  Index substituted = 0;          ///< samples replaced by OnFailure::substitute
  double queued_seconds = 0;      ///< time in which workers were ready to run and had no processor, sum over workers
  Index looks = 0;                ///< looks at workers in the middle of reading, taken while `next` waited for a batch
  Index locked = 0;               ///< looks that found the worker waiting for a lock
  std::string last_failure = {};  ///< reason for the latest skipped or replaced sample
  std::vector<SampleFailure> failures = {};  ///< the first `most_failures` skipped or replaced samples, each once

  static constexpr std::size_t most_failures = 100;  ///< largest number of `failures`

  /// Returns the time in which workers read, planned, wrote and finished batches, sum over all workers.
  [[nodiscard]] double busy_seconds() const noexcept;

  /// Returns a sentence that says whether training or loading waits, and recommends a change.
  [[nodiscard]] std::string verdict() const;

 private:
  [[nodiscard]] static std::string percent(double part) { return std::to_string(std::lround(100 * part)) + " %"; }
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/loader/loader_stats.ipp>
#endif
