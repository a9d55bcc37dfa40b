// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/any_host_resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// A loader whose batches can use memory of the caller's choice. Other loaders copy from memory that is not pinned.
template <class Loader>
concept TakesHostMemory = requires(Loader& loader, memory::AnyHostResource memory) {
  loader.use(memory);
};

/// Starts a loader at a step. For a GPU, batches use pinned memory.
template <class Replica, class Loader>
void start_loader(Loader& loader, data::Split const& split, Index epoch, Index step, Index last_epoch) {
  if constexpr (!Replica::Space::host_accessible && TakesHostMemory<Loader>) loader.use(Replica::batch_memory());
  loader.start(split, epoch, step, last_epoch);
}

}}}  // namespace lockstep::train::detail
