// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// What becomes of a batch with a sample that cannot be made.
enum class OnFailure {
  raise,       ///< `next` throws in its place (the default)
  skip,        ///< it is delivered without the sample, and the failure counted
  substitute,  ///< another sample, which epoch and position choose, takes the place, and the failure is counted
};

/// In which order batches arrive. Which samples a batch holds is the same for both.
enum class Delivery {
  ordered,    ///< the epoch's (the default)
  unordered,  ///< within an epoch, whichever is ready first; only for ranks that need not agree on a micro-step
};

/// Whether batches are made at all.
enum class Replay {
  none,    ///< each is made (the default)
  cached,  ///< once the ring is full, its batches are delivered again and again: what training costs without data work
};

struct DataLoaderOptions {
  Index batch_size = 1;  ///< samples per shard (rank or device) and micro-step
  int workers = 1;       ///< threads that make batches, kept until destruction; 0: the caller makes them in `next`
  int prefetch = 2;      ///< micro-steps made ahead of the one in use
  Tail tail = Tail::exact;
  int max_workers = 0;          ///< above `workers`: another worker starts while `next` waits and all are busy
  double deadline_seconds = 0;  ///< a longer wait in `next` is an error that names the stuck sample; 0: none
  Index budget_bytes = 0;       ///< batches are made ahead only while all in the ring need no more; 0: no limit
  OnFailure on_failure = OnFailure::raise;
  Delivery delivery = Delivery::ordered;
  Replay replay = Replay::none;
  std::uint64_t seed = 0;  ///< of the SampleKeys that datasets draw from
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
