// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Multiplies each row by one factor per channel.
template <class Space>
struct ChannelScale : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct ChannelScale<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y[r, c] = x[r, c] * factors[c], or adds it to y. Also computes the gradient of x from the gradient of y.
  /// @shape x, y [rows, channels]; y may be x   @shape factors [channels]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void run(Stream stream, Vector<Scalar const> factors, Matrix<Scalar const> x, Matrix<Scalar> y, Write write) {
    auto const channels = y.extent[1];
    stream.pool().for_ranges(y.extent[0], rows_per_task(channels), [=](Index begin, Index end) {
      with_best_instructions([=] {
        detail::maybe_in_place(x.data, y.data, [=](Scalar const* from, Scalar* to) {
          for (Index at = begin * channels; at < end * channels; at += channels)
            detail::write_each(0, channels, to + at, write, [=](Index c) { return from[at + c] * factors.data[c]; });
        });
      });
    });
  }

  /// Returns the number of elements that `factors_backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Index rows, Index channels) noexcept { return chunks(rows) * channels; }

  /// Computes dfactors[c] = the sum over the rows r of dy[r, c] * x[r, c], or adds it to dfactors. Sums chunks of rows,
  /// whose extent depends only on the number of rows, in order.
  /// @shape dy, x [rows, channels]   @shape dfactors [channels]
  /// @shape partial [partial_elements(rows, channels)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void factors_backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Vector<Scalar> dfactors,
                               Write write, Scalar* partial) {
    auto const rows = x.extent[0], channels = x.extent[1], each = chunk_rows(rows);
    stream.pool().run(chunks(rows), [=](Index chunk) {
      with_best_instructions([=, first = chunk * each, end = std::min(rows, (chunk + 1) * each)] {
        auto* __restrict const sums = partial + chunk * channels;
        std::fill_n(sums, channels, Scalar{0});
        for (Index at = first * channels; at < end * channels; at += channels)
          for (Index c = 0; c < channels; ++c) sums[c] += dy.data[at + c] * x.data[at + c];
      });
    });
    detail::sum_rows(partial, channels, channels, chunks(rows), dfactors.data, write);
  }

 private:
  [[nodiscard]] static Index rows_per_task(Index channels) noexcept {
    return std::max<Index>(1, 8192 / std::max<Index>(1, channels));
  }
  [[nodiscard]] static Index chunk_rows(Index rows) noexcept { return std::max<Index>(128, (rows + 63) / 64); }
  [[nodiscard]] static Index chunks(Index rows) noexcept { return (rows + chunk_rows(rows) - 1) / chunk_rows(rows); }
};

}}}  // namespace lockstep::kernel
