// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Starts a loader at a step. For a GPU, batches use pinned memory.
template <class Replica, class Loader>
void start_loader(Loader& loader, data::Split const& split, Index epoch, Index step, Index last_epoch) {
  if constexpr (!Replica::Space::host_accessible) use_batch_memory(loader, Replica::batch_memory());
  loader.start(split, epoch, step, last_epoch);
}

/// Starts a loader at a step with another tail than its own, if it has tails.
template <class Replica, class Loader>
void start_loader(Loader& loader, data::Split const& split, Index epoch, Index step, Index last_epoch,
                  data::Tail tail) {
  if constexpr (!Replica::Space::host_accessible) use_batch_memory(loader, Replica::batch_memory());
  if constexpr (requires { loader.start(split, epoch, step, last_epoch, tail); })
    loader.start(split, epoch, step, last_epoch, tail);
  else
    loader.start(split, epoch, step, last_epoch);
}

}}}  // namespace lockstep::train::detail
