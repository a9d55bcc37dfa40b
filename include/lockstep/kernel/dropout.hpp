// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/drop.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Dropout over samples: forward and backward are the same operation.
template <class Space>
struct Dropout {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Dropout<HostSpace> {
  /// y = keep * scale * x, or y += that; keep is 0 or 1 by `mask` for element slot * width + channel of the sample at
  /// positions[row]. Padding slots become zero (`add` leaves them as they are).
  /// @shape positions [rows]   @shape lengths [rows], or empty: no padding
  /// @shape x [rows * length, width]   @shape y as x; may be x itself
  /// @determinism bitwise, for any number of threads, wherever the sample lies in whatever batch
  template <class T>
  static void apply(memory::Stream<HostSpace> stream, DropoutMask mask, TensorView<Index const, 1, HostSpace> positions,
                    TensorView<std::int32_t const, 1, HostSpace> lengths, TensorView<T const, 2, HostSpace> x,
                    TensorView<T, 2, HostSpace> y, Write write) {
    auto const slots = x.extent[0], width = x.extent[1], rows = positions.size();
    if (slots == 0 || rows == 0) return;
    detail::for_token_runs(
        stream.pool(), rows, slots / rows, lengths,
        [=](Index row, Index slot, Index at, Index tokens) {
          with_best_instructions([=] {
            detail::drop(mask, static_cast<std::uint64_t>(positions.data[row]),
                         static_cast<std::uint64_t>(slot * width), tokens * width, x.data + at * width,
                         y.data + at * width, write);
          });
        },
        [=](Index at, Index padding) {
          if (write == Write::overwrite) std::fill_n(y.data + at * width, padding * width, T{0});
        });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
