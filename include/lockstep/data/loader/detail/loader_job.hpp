// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>
#include <lockstep/data/loader/loader_stats.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// A run of rows of one batch in one phase, done by one worker.
struct LoaderJob {
  SlotProgress* slot = nullptr;
  ShardProgress* shard = nullptr;
  Phase phase = Phase::done;
  Index begin = 0, end = 0;
  RowFailure failure{};
  std::vector<Index> failed{};  // rows to skip or to substitute
  Index missing = 0;            // failed rows whose samples do not exist
  Index substituted = 0;        // samples replaced for the first time
  std::vector<SampleFailure> failures{};
};

/// State of a thread that makes batches, or of the caller of `next` if there are no threads.
struct WorkerProgress {
  Phase phase = Phase::done;     // done: idle
  double since = 0;              // start of the phase
  int thread = 0;                // of the system; 0 for the caller of `next`
  std::atomic<Index> index{-1};  // of the current sample; -1 before a job's first
  std::atomic<Index> position{-1};

  WorkerProgress() = default;
  virtual ~WorkerProgress() = default;
};

/// A worker with its reader.
template <class Source>
struct LoaderWorker final : WorkerProgress {
  SampleReader<Source> reader;

  explicit LoaderWorker(Source const& dataset) : reader(dataset) {}
};

}}}  // namespace lockstep::data::detail
