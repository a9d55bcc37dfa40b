// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Token that represents its sequence.
enum class PooledToken { first, last };

namespace detail {
/// Returns the slot of that token, for a sequence with tokens.
template <class Space>
[[nodiscard]] constexpr Index pooled_slot(SequenceLayout<Space> const& layout, Index row, PooledToken which) noexcept {
  return layout.start(row) + (which == PooledToken::first ? 0 : layout.tokens(row) - 1);
}
}  // namespace detail

/// Reduces each sequence to one vector.
template <class Space>
struct Pooling : detail::NotIncluded<Space> {};

template <>
struct Pooling<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y[r] = 1 / n * the sum over the n tokens of sequence r, in order. A sequence without tokens gives zeros.
  /// Padding is not read.
  /// @shape x [layout.slots, width]   @shape y [rows, width]
  /// @determinism bitwise, for any number of threads
  /// @source direct from the definition
  template <class T>
  static void mean(Stream stream, SequenceLayout<HostSpace> layout, Matrix<T const> x, Matrix<T> y) {
    auto const width = y.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      with_best_instructions([=, first = layout.start(row), tokens = layout.tokens(row)] {
        auto* const out = y.data + row * width;
        auto const* in = x.data + first * width;
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

  /// Computes dx = dy[r] / n for each of the n tokens of sequence r and zero in padding, or adds it to dx.
  /// @shape dy [rows, width]   @shape dx [layout.slots, width]
  template <class T>
  static void mean_backward(Stream stream, SequenceLayout<HostSpace> layout, Matrix<T const> dy, Matrix<T> dx,
                            Write write) {
    auto const width = dy.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      with_best_instructions([=, first = layout.start(row), end = layout.end(row), tokens = layout.tokens(row)] {
        auto const* const in = dy.data + row * width;
        auto* out = dx.data + first * width;
        for (Index t = 0; t < tokens; ++t, out += width)
          detail::write_each(0, width, out, write, [=](Index c) { return in[c] / static_cast<T>(tokens); });
        if (write == Write::overwrite) std::fill_n(out, (end - first - tokens) * width, T{0});
      });
    });
  }

  /// Computes y[r] = the first or the last token of sequence r; a sequence without tokens gives zeros.
  /// @shape x [layout.slots, width]   @shape y [rows, width]
  template <class T>
  static void token(Stream stream, SequenceLayout<HostSpace> layout, PooledToken which, Matrix<T const> x,
                    Matrix<T> y) {
    auto const width = y.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      auto* const out = y.data + row * width;
      if (layout.tokens(row) == 0) return static_cast<void>(std::fill_n(out, width, T{0}));
      std::copy_n(x.data + detail::pooled_slot(layout, row, which) * width, width, out);
    });
  }

  /// Computes dx = dy[r] for that token of sequence r and zero in all other slots, or adds it to dx.
  /// @shape dy [rows, width]   @shape dx [layout.slots, width]
  template <class T>
  static void token_backward(Stream stream, SequenceLayout<HostSpace> layout, PooledToken which, Matrix<T const> dy,
                             Matrix<T> dx, Write write) {
    auto const width = dy.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      auto const* const in = dy.data + row * width;
      auto const start = layout.start(row), slots = layout.end(row) - start;
      if (write == Write::overwrite) std::fill_n(dx.data + start * width, slots * width, T{0});
      if (layout.tokens(row) == 0) return;
      auto* const out = dx.data + detail::pooled_slot(layout, row, which) * width;
      for (Index c = 0; c < width; ++c) out[c] += in[c];
    });
  }
};

}}}  // namespace lockstep::kernel
