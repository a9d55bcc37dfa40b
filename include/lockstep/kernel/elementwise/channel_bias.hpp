// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Adds one number per channel to each row.
template <class Space>
struct ChannelBias : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct ChannelBias<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y += bias in each row.
  /// @shape bias [channels]   @shape y [rows, channels]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Vector<Scalar const> bias, Matrix<Scalar> y) {
    auto const channels = y.extent[1];
    stream.pool().for_ranges(y.extent[0], rows_per_task(channels), [=](Index begin, Index end) {
      with_best_instructions([=] {
        for (Index row = begin; row < end; ++row) {
          auto* __restrict const to = y.data + row * channels;
          for (Index c = 0; c < channels; ++c) to[c] += bias.data[c];
        }
      });
    });
  }

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Index rows, Index channels) noexcept {
    return chunks(rows) > 1 ? chunks(rows) * channels : 0;
  }

  /// Computes dbias = the sum of the rows of dy, or adds it to dbias. Sums chunks of rows, whose extent depends only on
  /// the number of rows, in order.
  /// @shape dy [rows, channels]   @shape dbias [channels]
  /// @shape partial [partial_elements(rows, channels)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Vector<Scalar> dbias, Write write, Scalar* partial) {
    auto const rows = dy.extent[0], channels = dy.extent[1], count = chunks(rows), each = chunk_rows(rows);
    auto const sum = [=](Scalar const* from, Index many, Scalar* to, Write how) {
      detail::sum_rows(from, channels, channels, many, to, how);
    };
    if (count <= 1) return sum(dy.data, rows, dbias.data, write);
    stream.pool().run(count, [&](Index chunk) {
      auto const first = chunk * each;
      sum(dy.data + first * channels, std::min(each, rows - first), partial + chunk * channels, Write::overwrite);
    });
    sum(partial, count, dbias.data, write);
  }

 private:
  [[nodiscard]] static Index rows_per_task(Index channels) noexcept {
    return std::max<Index>(1, 8192 / std::max<Index>(1, channels));
  }
  [[nodiscard]] static Index chunk_rows(Index rows) noexcept { return std::max<Index>(512, (rows + 63) / 64); }
  [[nodiscard]] static Index chunks(Index rows) noexcept { return (rows + chunk_rows(rows) - 1) / chunk_rows(rows); }
};

}}}  // namespace lockstep::kernel
