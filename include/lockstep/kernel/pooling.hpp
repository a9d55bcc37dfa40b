// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// One vector out of each padded sequence.
template <class Space>
struct Pooling {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Pooling<HostSpace> {
  /// y[r] = 1 / lengths[r] * sum over t < lengths[r] of x[r, t], summed in the order of t; a sequence without tokens
  /// gives zeros. Padding is not read.
  /// @shape x [rows * length, width]   @shape lengths [rows], each in [0, length]   @shape y [rows, width]
  /// @determinism bitwise, for any number of threads
  /// @source direct from the definition
  template <class T>
  static void mean(memory::Stream<HostSpace> stream, TensorView<std::int32_t const, 1, HostSpace> lengths,
                   TensorView<T const, 2, HostSpace> x, TensorView<T, 2, HostSpace> y) {
    auto const rows = y.extent[0], width = y.extent[1], length = rows == 0 ? 0 : x.extent[0] / rows;
    stream.pool().run(rows, [=](Index row) {
      with_best_instructions([=, tokens = static_cast<Index>(lengths.data[row])] {
        auto* const out = y.data + row * width;
        auto const* in = x.data + row * length * width;
        if (tokens == 0) return static_cast<void>(std::fill_n(out, width, T{0}));
        std::copy_n(in, width, out);
        for (Index t = 1; t < tokens; ++t) {
          in += width;
          for (Index c = 0; c < width; ++c) out[c] += in[c];
        }
        for (Index c = 0; c < width; ++c) out[c] /= static_cast<T>(tokens);
      });
    });
  }

  /// dx[r, t] = dy[r] / lengths[r] for tokens and zero in padding, or dx += that.
  /// @shape dy [rows, width]   @shape dx [rows * length, width]
  template <class T>
  static void mean_backward(memory::Stream<HostSpace> stream, TensorView<std::int32_t const, 1, HostSpace> lengths,
                            TensorView<T const, 2, HostSpace> dy, TensorView<T, 2, HostSpace> dx, Write write) {
    auto const rows = dy.extent[0], width = dy.extent[1], length = rows == 0 ? 0 : dx.extent[0] / rows;
    stream.pool().run(rows, [=](Index row) {
      with_best_instructions([=, tokens = static_cast<Index>(lengths.data[row])] {
        auto const* const in = dy.data + row * width;
        auto* out = dx.data + row * length * width;
        for (Index t = 0; t < tokens; ++t, out += width) {
          if (write == Write::overwrite) {
            for (Index c = 0; c < width; ++c) out[c] = in[c] / static_cast<T>(tokens);
          } else {
            for (Index c = 0; c < width; ++c) out[c] += in[c] / static_cast<T>(tokens);
          }
        }
        if (write == Write::overwrite) std::fill_n(out, (length - tokens) * width, T{0});
      });
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
