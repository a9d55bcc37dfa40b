// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/for_lines.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Values of padding, for an axis with the values a b c d and two positions of padding on either side.
enum class PadMode {
  circular,   ///< c d | a b c d | a b: the axis is periodic
  reflect,    ///< c b | a b c d | c b: mirrored, without the value at the border
  replicate,  ///< a a | a b c d | d d: the value at the border
  zero,       ///< 0 0 | a b c d | 0 0
};

/// Padding of an image with its own values or zeros. Missing dimensions of space come first and have extent 1.
struct PadShape {
  Index rows = 0;                    ///< samples
  Index channels = 1;                ///< of x and y, in the last axis
  Extents<3> extent{1, 1, 1};        ///< of x
  Extents<3> before{0, 0, 0};        ///< positions of y before those of x, along each axis
  Extents<3> after{0, 0, 0};         ///< positions of y after those of x, along each axis
  PadMode mode = PadMode::circular;  ///< values of the padding

  /// Returns the extent of y along an axis.
  [[nodiscard]] constexpr Index result(std::size_t axis) const noexcept {
    return before[axis] + extent[axis] + after[axis];
  }
  /// Returns the extents of y.
  [[nodiscard]] constexpr Extents<3> result() const noexcept { return {result(0), result(1), result(2)}; }
  /// elements of one sample of x
  [[nodiscard]] constexpr Index input_size() const noexcept { return elements(extent) * channels; }
  /// elements of one sample of y
  [[nodiscard]] constexpr Index output_size() const noexcept { return elements(result()) * channels; }

  /// Returns the position of x that a position of y copies, along an axis, or -1 if it is zero.
  [[nodiscard]] constexpr Index source(std::size_t axis, Index position) const noexcept {
    Index const at = position - before[axis], end = extent[axis];
    if (at >= 0 && at < end) return at;
    if (mode == PadMode::zero) return -1;
    if (mode == PadMode::circular) return at < 0 ? at + end : at - end;
    if (mode == PadMode::reflect) return at < 0 ? -at : 2 * (end - 1) - at;
    return at < 0 ? 0 : end - 1;
  }
  /// Calls f(position of y) for each position of the padding along an axis, in order.
  template <class Function>
  constexpr void for_padding(std::size_t axis, Function const& f) const {
    for (Index i = 0; i < before[axis]; ++i) f(i);
    for (Index i = before[axis] + extent[axis]; i < result(axis); ++i) f(i);
  }
  /// Calls f(position of y) for each copy of a position of x along an axis: the copy outside padding, then the others
  /// in order.
  template <class Function>
  constexpr void for_copies(std::size_t axis, Index position, Function const& f) const {
    f(before[axis] + position);
    for_padding(axis, [&](Index i) {
      if (source(axis, i) == position) f(i);
    });
  }
};

namespace detail {
/// Checks that each position of padding has a source. A batch without rows may have any extents.
/// @throws ShapeError if the padding of an axis is larger than the axis allows
inline void check_padding(PadShape const& s) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Index const widest = std::max(s.before[axis], s.after[axis]), end = s.extent[axis];
    bool const fits = s.mode == PadMode::circular  ? widest <= end
                      : s.mode == PadMode::reflect ? widest < std::max<Index>(1, end)
                      : s.mode == PadMode::zero    ? true
                                                   : widest == 0 || end > 0;
    expect<ShapeError>(s.rows == 0 || fits, [&] {
      auto const* const rule = s.mode == PadMode::circular ? "circular padding must be at most the extent of its axis"
                               : s.mode == PadMode::reflect
                                   ? "reflected padding must be less than the extent of its axis"
                                   : "an axis without positions has no value to replicate";
      return "Pad: x has extent " + to_string(s.extent) + " and gets padding " + to_string(s.before) + " before and " +
             to_string(s.after) + " after; " + rule;
    });
  }
}
}  // namespace detail

/// Pads images with their own values or zeros.
template <class Space>
struct Pad : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Pad<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y = x at the position that each position copies, or 0.
  /// @shape x [rows, extent…, channels]   @shape y [rows, before + extent + after…, channels], overwritten
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if a padding is larger than its axis allows
  template <class Scalar>
  static void forward(Stream stream, PadShape const& s, Vector<Scalar const> x, Vector<Scalar> y) {
    detail::check_padding(s);
    detail::for_lines(stream, s.rows, s.result(), s.channels, [=](Index row, Index d, Index h, Index line) {
      auto* const to = y.data + line * s.result(2) * s.channels;
      Index const from_d = s.source(0, d), from_h = s.source(1, h);
      if (from_d < 0 || from_h < 0) {
        std::fill_n(to, s.result(2) * s.channels, Scalar{0});
        return;
      }
      auto const* const from =
          x.data + ((row * s.extent[0] + from_d) * s.extent[1] + from_h) * s.extent[2] * s.channels;
      std::copy_n(from, s.extent[2] * s.channels, to + s.before[2] * s.channels);
      s.for_padding(2, [=](Index i) {
        if (s.mode == PadMode::zero)
          std::fill_n(to + i * s.channels, s.channels, Scalar{0});
        else
          std::copy_n(from + s.source(2, i) * s.channels, s.channels, to + i * s.channels);
      });
    });
  }

  /// Computes dx = the sum of dy over the copies of each position of x, in a fixed order, or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, PadShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx, Write write) {
    detail::check_padding(s);
    detail::for_lines(stream, s.rows, s.extent, s.channels, [=](Index row, Index d, Index h, Index line) {
      auto* __restrict const to = dx.data + line * s.extent[2] * s.channels;
      if (write == Write::overwrite) std::fill_n(to, s.extent[2] * s.channels, Scalar{0});
      s.for_copies(0, d, [=](Index copy_d) {
        s.for_copies(1, h, [=](Index copy_h) {
          auto const* const from =
              dy.data + ((row * s.result(0) + copy_d) * s.result(1) + copy_h) * s.result(2) * s.channels;
          auto const add = [=](Index at, Index count, Index copy) {
            for (Index c = 0; c < count * s.channels; ++c) to[at * s.channels + c] += from[copy * s.channels + c];
          };
          add(0, s.extent[2], s.before[2]);
          if (s.mode != PadMode::zero) s.for_padding(2, [=](Index i) { add(s.source(2, i), 1, i); });
        });
      });
    });
  }
};

}}}  // namespace lockstep::kernel
