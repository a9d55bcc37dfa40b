// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/pooling/detail/check_pooling.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Reduces each window of positions to one value, channel by channel. The shape is that of a convolution, whose inputs
/// are the channels; its `outputs` are not used.
template <class Space>
struct SpatialPooling : detail::NotIncluded<Space> {};

template <>
struct SpatialPooling<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y = the largest x of each window, without padding. NaN is larger than any number. The first of several
  /// equal values wins.
  /// @shape x [rows, extent…, channels]   @shape y [rows, result…, channels], overwritten
  /// @shape argmax as y, or null: the position in x of each
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if a size does not match the shape, the result has no positions, or a window consists of
  /// padding
  /// @source direct from the definition
  template <class T>
  static void max(Stream stream, ConvolutionShape const& s, Vector<T const> x, Vector<T> y,
                  Vector<std::int32_t> argmax) {
    detail::check_pooling(s, x.size(), y.size());
    for_windows(stream, s, [=, channels = s.inputs](Index row, Index position, Window const& window) {
      auto* const best = y.data + (row * s.output_positions() + position) * channels;
      auto* const at = argmax.data ? argmax.data + (row * s.output_positions() + position) * channels : nullptr;
      auto const* const sample = x.data + row * s.input_size();
      std::fill_n(best, channels, -std::numeric_limits<T>::infinity());
      if (at) std::fill_n(at, channels, static_cast<std::int32_t>(window.first_position(s)));
      window.for_positions(s, [=](Index from) {
        auto const* const here = sample + from * channels;
        if (at) {
          for (Index c = 0; c < channels; ++c) at[c] = wins(here[c], best[c]) ? static_cast<std::int32_t>(from) : at[c];
        }
        for (Index c = 0; c < channels; ++c) best[c] = wins(here[c], best[c]) ? here[c] : best[c];
      });
    });
  }

  /// Computes dx = dy at the positions that won, summed over windows, and zero elsewhere, or adds it to dx.
  template <class T>
  static void max_backward(Stream stream, ConvolutionShape const& s, Vector<T const> dy,
                           Vector<std::int32_t const> argmax, Vector<T> dx, Write write) {
    detail::check_pooling(s, dx.size(), dy.size());
    stream.pool().run(s.rows,
                      [=, channels = s.inputs, positions = s.output_positions(), size = s.input_size()](Index row) {
                        auto* const to = dx.data + row * size;
                        if (write == Write::overwrite) std::fill_n(to, size, T{0});
                        for (Index position = row * positions; position < (row + 1) * positions; ++position)
                          for (Index c = 0; c < channels; ++c)
                            to[argmax.data[position * channels + c] * channels + c] += dy.data[position * channels + c];
                      });
  }

  /// Computes y = 1 / taps * the sum of each window, in order. As in PyTorch, counts the zeros of padding.
  template <class T>
  static void average(Stream stream, ConvolutionShape const& s, Vector<T const> x, Vector<T> y) {
    detail::check_pooling(s, x.size(), y.size());
    if (s.kernel == s.extent && s.padding == Extents<3>{}) return average_of_all(stream, s, x, y);
    for_windows(stream, s, [=, channels = s.inputs](Index row, Index position, Window const& window) {
      auto* const sum = y.data + (row * s.output_positions() + position) * channels;
      std::fill_n(sum, channels, T{0});
      window.for_positions(s, [=](Index from) {
        auto const* const here = x.data + row * s.input_size() + from * channels;
        for (Index c = 0; c < channels; ++c) sum[c] += here[c];
      });
      for (Index c = 0; c < channels; ++c) sum[c] /= static_cast<T>(s.taps());
    });
  }

  /// Computes dx = 1 / taps * the sum of dy over the windows that contain a position, or adds it to dx.
  template <class T>
  static void average_backward(Stream stream, ConvolutionShape const& s, Vector<T const> dy, Vector<T> dx,
                               Write write) {
    detail::check_pooling(s, dx.size(), dy.size());
    stream.pool().run(s.rows, [=](Index row) {
      with_best_instructions([=] {
        Index const channels = s.inputs;
        auto* const to = dx.data + row * s.input_size();
        if (write == Write::overwrite) std::fill_n(to, s.input_size(), T{0});
        for (Index position = 0; position < s.output_positions(); ++position) {
          auto const* const from = dy.data + (row * s.output_positions() + position) * channels;
          Window(s, position).for_positions(s, [=](Index at) {
            for (Index c = 0; c < channels; ++c) to[at * channels + c] += from[c] / static_cast<T>(s.taps());
          });
        }
      });
    });
  }

 private:
  /// Averages a window of all positions: its sum is as accurate as the sum of a few.
  template <class T>
  static void average_of_all(Stream stream, ConvolutionShape const& s, Vector<T const> x, Vector<T> y) {
    stream.pool().for_ranges(s.rows, std::max<Index>(1, 8192 / std::max<Index>(1, s.input_size())),
                             [=, channels = s.inputs](Index row, Index end) {
                               for (; row < end; ++row) {
                                 auto* const mean = y.data + row * channels;
                                 detail::sum_rows(x.data + row * s.input_size(), channels, channels, s.taps(), mean,
                                                  Write::overwrite);
                                 for (Index c = 0; c < channels; ++c) mean[c] /= static_cast<T>(s.taps());
                               }
                             });
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] static bool wins(T x, T best) noexcept {
    return x > best || x != x;
  }
  /// Positions of x, along each axis, that one output position reads.
  struct Window {
    Extents<3> begin, end;
    Window(ConvolutionShape const& s, Index position) noexcept {
      auto const height = s.result(1), width = s.result(2);
      Extents<3> const at{position / (height * width), position / width % height, position % width};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        Index const first = at[axis] * s.stride[axis] - s.padding[axis];
        begin[axis] = std::max<Index>(0, first);
        end[axis] = std::min(s.extent[axis], first + s.kernel[axis]);
      }
    }
    [[nodiscard]] Index first_position(ConvolutionShape const& s) const noexcept {
      return (begin[0] * s.extent[1] + begin[1]) * s.extent[2] + begin[2];
    }
    template <class F>
    [[gnu::always_inline]] void for_positions(ConvolutionShape const& s, F&& f) const noexcept {
      for (Index d = begin[0]; d < end[0]; ++d)
        for (Index h = begin[1]; h < end[1]; ++h)
          for (Index w = begin[2]; w < end[2]; ++w) f((d * s.extent[1] + h) * s.extent[2] + w);
    }
  };

  /// Calls f(row, position, window) for each output position, on the threads of the pool.
  template <class F>
  static void for_windows(Stream stream, ConvolutionShape const& s, F const& f) {
    auto const positions = s.output_positions();
    Index const each = std::max<Index>(1, 8192 / std::max<Index>(1, s.inputs * s.taps()));
    stream.pool().for_ranges(s.rows * positions, each, [&f, s, positions](Index begin, Index end) {
      with_best_instructions([f, s, positions, begin, end] {
        for (Index i = begin; i < end; ++i) f(i / positions, i % positions, Window(s, i % positions));
      });
    });
  }
};

}}}  // namespace lockstep::kernel
