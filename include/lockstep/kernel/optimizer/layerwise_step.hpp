// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail {
/// Returns the ratio of the norms of a parameter and of its update, or 1 if either is zero.
[[nodiscard]] constexpr double trust_ratio(double squares_of_values, double squares_of_update) noexcept {
  return squares_of_values > 0 && squares_of_update > 0 ? std::sqrt(squares_of_values / squares_of_update) : 1;
}
}  // namespace detail

/// Updates a whole parameter by a rule whose step has the length of the parameter times the rate: values -= rate *
/// |values| / |update| * update.
template <class Space>
struct LayerwiseStep : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct LayerwiseStep<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Calls rule.moments(n, values, gradients, states) and rule.update(vectors, n, values, states, update) for
  /// consecutive blocks of n <= `block` elements of the slice, a whole parameter, and sums the squares of values and
  /// update in double. Then computes the update again, and subtracts rule.rate() times the ratio of the norms times the
  /// update. If the slice has a 16-bit copy, it receives the new values. Does nothing if the step is not active.
  /// Allocates nothing.
  /// @determinism bitwise, for any number of threads: the slice's size determines the chunks, which are summed in order
  template <int states_count, class Slice, class Scalars, class MakeRule>
  static void run(Stream stream, Slice const& slice, Scalars const* scalars, MakeRule const& make_rule) {
    using Scalar = std::remove_reference_t<decltype(*slice.values)>;
    if (!scalars->active()) return;
    auto const rule = make_rule(*scalars);
    auto const chunk = chunk_of(slice.count), chunks = (slice.count + chunk - 1) / chunk;
    auto const for_blocks = [&](auto const& f) {  // f(vectors, chunk, at, n, states, update)
      stream.pool().for_ranges(chunks, 1, [&](Index begin, Index end) {
        with_best_instructions([&](auto vectors) {
          std::array<Scalar, static_cast<std::size_t>(block)> update;
          for (Index c = begin; c < end; ++c)
            for (Index at = c * chunk, stop = std::min(slice.count, at + chunk), n; at < stop; at += n) {
              n = std::min(block, stop - at);
              std::array<Scalar*, static_cast<std::size_t>(states_count)> states{};
              for (std::size_t s = 0; s < states.size(); ++s) states[s] = slice.states[s] + at;
              f(vectors, c, at, n, states, update.data());
            }
        });
      });
    };
    std::array<double, static_cast<std::size_t>(max_chunks)> of_values{}, of_update{};
    for_blocks([&](auto vectors, Index c, Index at, Index n, auto const& states, Scalar* update) {
      rule.moments(n, slice.values + at, slice.gradients + at, states);
      rule.update(vectors, n, slice.values + at, states, update);
      of_values[static_cast<std::size_t>(c)] += squares(slice.values + at, n);
      of_update[static_cast<std::size_t>(c)] += squares(update, n);
    });
    double values = 0, updates = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(chunks); ++c) {
      values += of_values[c];
      updates += of_update[c];
    }
    auto const rate = static_cast<Scalar>(rule.rate() * detail::trust_ratio(values, updates));
    for_blocks([&](auto vectors, Index, Index at, Index n, auto const& states, Scalar* update) {
      rule.update(vectors, n, slice.values + at, states, update);
      for (Index i = 0; i < n; ++i) slice.values[at + i] -= rate * update[i];
      if (slice.half_precision)
        for (Index i = at; i < at + n; ++i) slice.half_precision.put(i, static_cast<float>(slice.values[i]));
    });
  }

  /// Elements of one call of the rule: few enough that its temporaries stay in the first cache.
  static constexpr Index block = 256;

 private:
  static constexpr Index max_chunks = 256, smallest_chunk = 16 * block;

  /// Returns the number of elements of which a thread sums the squares.
  [[nodiscard]] static constexpr Index chunk_of(Index count) noexcept {
    return std::max(smallest_chunk, (count + max_chunks * block - 1) / (max_chunks * block) * block);
  }
  /// Sums in eight lanes, so that the loop is vectorized.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static double squares(Scalar const* x, Index n) noexcept {
    std::array<double, 8> lanes{};
    Index i = 0;
    for (; i + 8 <= n; i += 8)
      for (Index lane = 0; lane < 8; ++lane) {
        auto const one = static_cast<double>(x[i + lane]);
        lanes[static_cast<std::size_t>(lane)] += one * one;
      }
    for (std::size_t lane = 0; i < n; ++i, ++lane) lanes[lane] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
  }
};

}}}  // namespace lockstep::kernel
