// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <utility>

#include <lockstep/launch/thread_ranks.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

template <class Train>
requires std::is_invocable_r_v<int, Train&, World&>
int run(Options const& options, Train&& train) {
  if (options.threads > 1) return run_threads(options, std::ref(train));
  World world;
  return train(world);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
