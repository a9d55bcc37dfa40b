// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Every token of a sequence plus the numbers of its sequence, channel by channel.
template <class Space>
struct SequenceShift {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct SequenceShift<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, HostSpace>;

  /// y[s, c] = x[s, c] + by[r, c] for every slot s of sequence r, padding included.
  /// @shape x, y [layout.slots, width]; y may be x   @shape by [rows, width]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void run(Stream stream, SequenceLayout<HostSpace> layout, Matrix<T const> x, Matrix<T const> by, Matrix<T> y) {
    auto const width = y.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      with_best_instructions([=, first = layout.start(row), end = layout.end(row)] {
        auto const* const add = by.data + row * width;
        detail::maybe_in_place(x.data, y.data, [=](T const* from, T* to) {
          for (Index at = first * width; at < end * width; at += width)
            for (Index c = 0; c < width; ++c) to[at + c] = from[at + c] + add[c];
        });
      });
    });
  }

  /// dby[r, c] = sum over the tokens s of sequence r, in their order, of dy[s, c], or dby += that; a sequence without
  /// tokens gives zeros. Padding is not read.
  /// @shape dy [layout.slots, width]   @shape dby [rows, width]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, SequenceLayout<HostSpace> layout, Matrix<T const> dy, Matrix<T> dby,
                       Write write) {
    auto const width = dby.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      with_best_instructions([=, first = layout.start(row), tokens = layout.tokens(row)] {
        auto* const to = dby.data + row * width;
        if (write == Write::overwrite) std::fill_n(to, width, T{0});
        for (Index at = first * width; at < (first + tokens) * width; at += width)
          for (Index c = 0; c < width; ++c) to[c] += dy.data[at + c];
      });
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
