// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// One pass over a range of an arena that updates values and optimizer states in place.
template <class Space>
struct OptimizerStep : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct OptimizerStep<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Calls rule(n, values, gradients, states) for consecutive blocks of n <= `block` elements of the slice. If the rule
  /// takes the vector width that it is compiled for, calls rule(vectors, n, ...). `states` is an array of pointers,
  /// each to the block's part of one state. Gradients of untouched rows are zero and not read. If
  /// rule.leaves_untouched_rows(), such rows are skipped. If the slice has a 16-bit copy, it receives the new values.
  /// Does nothing if the step is not active. Calls `make_rule(scalars)` once. An elementwise rule gives equal bits for
  /// any slices of the arena.
  /// @determinism bitwise, for any number of threads
  template <int states_count, class Slice, class Scalars, class MakeRule>
  static void run(Stream stream, Slice const& slice, Scalars const* scalars, MakeRule const& make_rule) {
    using Scalar = std::remove_reference_t<decltype(*slice.values)>;
    if (!scalars->active()) return;
    auto const rule = make_rule(*scalars);
    stream.pool().for_ranges(slice.count, grain, [&](Index begin, Index end) {
      with_best_instructions([&](auto vectors) {
        for (Index at = begin; at < end;) {
          auto const [written, stop] = run_at(slice.touched, slice.offset, at, end);
          if (!written && rule.leaves_untouched_rows()) at = stop;
          for (Index n; at < stop; at += n) {
            n = std::min(block, stop - at);
            std::array<Scalar*, static_cast<std::size_t>(states_count)> here{};
            for (std::size_t s = 0; s != here.size(); ++s) here[s] = slice.states[s] + at;
            auto const* const gradients = written ? slice.gradients + at : zeros<Scalar>.data();
            if constexpr (requires { rule(vectors, n, slice.values, gradients, here); }) {
              rule(vectors, n, slice.values + at, gradients, here);
            } else {
              rule(n, slice.values + at, gradients, here);
            }
            if (slice.half_precision)
              for (Index i = at; i < at + n; ++i) slice.half_precision.put(i, static_cast<float>(slice.values[i]));
          }
        }
      });
    });
  }

  /// Elements of one call of the rule: few enough that its temporaries stay in the first cache.
  static constexpr Index block = 256;

 private:
  static constexpr Index grain = 64 * block;
  template <class Scalar>
  static constexpr std::array<Scalar, static_cast<std::size_t>(block)> zeros{};

  struct Run {
    bool written;
    Index stop;
  };
  /// Returns whether the rows from `at` on are written, and the end of the run of equal rows, at most `end`. The slice
  /// starts at `offset`.
  static Run run_at(TouchedRows const& table, Index offset, Index at, Index end) noexcept {
    if (table.words == nullptr) return {true, end};
    auto const row = (offset + at - table.offset) / table.width;
    auto const last = std::min(table.rows, (offset + end - table.offset + table.width - 1) / table.width);
    return {table.contains(row), std::min(end, table.offset + table.end_of_run(row, last) * table.width - offset)};
  }
};

}}}  // namespace lockstep::kernel
