// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Starts a loader at a step. For a GPU, batches use pinned memory.
template <class Replica, class Loader>
void start_loader(Loader& loader, data::Split const& split, Index epoch, Index step, Index last_epoch) {
  if constexpr (!Replica::Space::host_accessible) use_batch_memory(loader, Replica::batch_memory());
  loader.start(split, epoch, step, last_epoch);
}

/// Starts a loader so that its first epoch has each sample at most once, whatever its options are: without padding, and
/// a sample that would be substituted is skipped.
template <class Loader>
void start_once(Loader& loader, data::Split const& split) {
  if constexpr (requires { loader.start(split, 0, 0, 1, data::Tail::exact, data::OnFailure::skip); }) {
    auto const on_failure = loader.options().on_failure;
    loader.start(split, 0, 0, 1, data::Tail::exact,
                 on_failure == data::OnFailure::substitute ? data::OnFailure::skip : on_failure);
  } else {
    loader.start(split, 0, 0, 1);
  }
}

/// Starts a loader for an evaluation.
template <class Replica, class Loader>
void start_evaluation(Loader& loader, data::Split const& split) {
  if constexpr (!Replica::Space::host_accessible) use_batch_memory(loader, Replica::batch_memory());
  start_once(loader, split);
}

}}}  // namespace lockstep::train::detail
