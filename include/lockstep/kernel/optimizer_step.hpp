// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// One pass over a range of an arena that updates values and optimizer states in place.
template <class Space>
struct OptimizerStep {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct OptimizerStep<HostSpace> {
  /// Calls rule(n, values, gradients, states) for consecutive blocks of n <= `block` elements; `states` is an array of
  /// pointers, each to the block's part of one state. Does nothing when the step is not active. `make_rule(scalars)` is
  /// called once. An elementwise rule gives the same bits however the arena is sliced.
  /// @determinism bitwise, for any number of threads
  template <int states_count, class T, class Scalars, class MakeRule>
  static void run(memory::Stream<HostSpace> stream, Index count, T* values, T const* gradients, T* const* states,
                  Scalars const* scalars, MakeRule const& make_rule) {
    if (!scalars->active()) return;
    auto const rule = make_rule(*scalars);
    stream.pool().for_ranges(count, grain, [&](Index begin, Index end) {
      with_best_instructions([&] {
        for (Index at = begin; at < end; at += block) {
          std::array<T*, static_cast<std::size_t>(states_count)> here{};
          for (std::size_t s = 0; s < here.size(); ++s) here[s] = states[s] + at;
          rule(std::min(block, end - at), values + at, gradients + at, here);
        }
      });
    });
  }

  /// What a rule sees at once: small enough that its temporaries stay in the first cache.
  static constexpr Index block = 256;

 private:
  static constexpr Index grain = 64 * block;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
