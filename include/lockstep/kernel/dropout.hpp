// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/drop.hpp>
#include <lockstep/kernel/detail/of_space.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Dropout over samples: forward and backward are the same operation.
template <class Space>
struct Dropout : detail::NotIncluded<Space> {};

template <>
struct Dropout<HostSpace> : detail::OfSpace<HostSpace> {
  /// y = keep * scale * x, or y += that; keep is 0 or 1 by `mask` for element t * width + channel of the sample whose
  /// token t it is. Padding slots become zero (`add` leaves them as they are).
  /// @shape x [layout.slots, width]   @shape y as x; may be x itself
  /// @determinism bitwise, for any number of threads, wherever the sample lies in whatever batch
  template <class T>
  static void apply(Stream stream, DropoutMask mask, SequenceLayout<HostSpace> layout, Matrix<T const> x, Matrix<T> y,
                    Write write) {
    auto const width = x.extent[1];
    detail::for_token_runs(
        stream.pool(), layout,
        [=](Index row, Index t, Index at, Index tokens) {
          with_best_instructions([=] {
            detail::drop(mask, static_cast<std::uint64_t>(layout.positions.data[row]),
                         static_cast<std::uint64_t>(t * width), tokens * width, x.data + at * width,
                         y.data + at * width, write);
          });
        },
        [=](Index at, Index padding) {
          if (write == Write::overwrite) std::fill_n(y.data + at * width, padding * width, T{0});
        });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
