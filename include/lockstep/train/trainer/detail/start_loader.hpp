// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/detail/start_once.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Starts a loader at a step. For a GPU, batches use pinned memory.
template <class Replica, class Loader>
void start_loader(Loader& loader, data::Split const& split, Index epoch, Index step, Index last_epoch) {
  if constexpr (!Replica::Space::host_accessible) use_batch_memory(loader, Replica::batch_memory());
  loader.start(split, epoch, step, last_epoch);
}

/// Starts a loader for an evaluation.
template <class Replica, class Loader>
void start_evaluation(Loader& loader, data::Split const& split) {
  if constexpr (!Replica::Space::host_accessible) use_batch_memory(loader, Replica::batch_memory());
  start_once(loader, split);
}

}}}  // namespace lockstep::train::detail
