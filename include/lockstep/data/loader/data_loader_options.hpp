// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Handling of a batch with a sample that cannot be made.
enum class OnFailure {
  raise,       ///< `next` throws instead of returning the batch (the default)
  skip,        ///< the batch is delivered without the sample, and the failure is counted
  substitute,  ///< another sample, chosen by epoch and position, replaces it, and the failure is counted
};

/// Order in which batches arrive. The samples of each batch are equal for both.
enum class Delivery {
  ordered,    ///< the order of the epoch (the default)
  unordered,  ///< within an epoch, the first that is ready; only for ranks that need not agree on a micro-step
};

/// Whether every batch is made.
enum class Replay {
  none,    ///< every batch is made (the default)
  cached,  ///< once the ring is full, its batches are delivered repeatedly: measures training without data work
};

/// Options of DataLoader: batches, threads, prefetching, the last batch of an epoch.
struct DataLoaderOptions {
  Index batch_size = 1;     ///< samples per shard (rank or device) and micro-step
  int workers = 1;          ///< threads that make batches, kept until destruction; 0: the caller makes them in `next`
  int prefetch = 2;         ///< micro-steps prefetched in addition to the one in use
  Tail tail = Tail::exact;  ///< incomplete global batch at the end of an epoch
  int max_workers = 0;      ///< if above `workers`: another worker starts when `next` waits and all are busy; without
                            ///< effect if `workers` is 0
  double deadline_seconds = 0;  ///< a longer wait in `next` is an error that names the stuck sample; 0: no deadline;
                                ///< without effect if `workers` is 0
  Index budget_bytes = 0;       ///< batches are prefetched only while all slots together need at most this; 0: no limit
  OnFailure on_failure = OnFailure::raise;  ///< if a sample cannot be made
  Delivery delivery = Delivery::ordered;    ///< order of the batches
  Replay replay = Replay::none;             ///< to measure training without data work
  std::uint64_t seed = 0;                   ///< of the SampleKeys that datasets draw from
};

/// Describes the options that are numbers or words. The checks of a loader and a trainer's flags follow from it.
[[nodiscard]] OptionList describe(DataLoaderOptions& options);

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/loader/data_loader_options.ipp>
#endif
