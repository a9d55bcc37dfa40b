// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/pooling/detail/check_pooling.hpp>
#include <lockstep/kernel/pooling/pooling_shape.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Number that the mean of a window divides its sum by. Positions beyond `padding` on either side never count.
enum class PoolingDivisor {
  padded,    ///< positions within x and its padding, whose values are zeros
  elements,  ///< positions within x; always for adaptive windows
};

/// Reduces each window of positions to one value, channel by channel. The shape's inputs are the channels; its
/// `outputs` are not used.
template <class Space>
struct SpatialPooling : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
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
  template <class Scalar>
  static void max(Stream stream, PoolingShape const& s, Vector<Scalar const> x, Vector<Scalar> y,
                  Vector<std::int32_t> argmax);

  /// Computes dx = dy at the positions that won, summed over windows, and zero elsewhere, or adds it to dx.
  template <class Scalar>
  static void max_backward(Stream stream, PoolingShape const& s, Vector<Scalar const> dy,
                           Vector<std::int32_t const> argmax, Vector<Scalar> dx, Write write);

  /// Computes y = the sum of each window, in order, divided by the divisor of the window.
  template <class Scalar>
  static void average(Stream stream, PoolingShape const& s, Vector<Scalar const> x, Vector<Scalar> y,
                      PoolingDivisor divisor = PoolingDivisor::padded);

  /// Computes dx = the sum of dy, divided by the divisor of its window, over the windows that contain a position, or
  /// adds it to dx.
  template <class Scalar>
  static void average_backward(Stream stream, PoolingShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx,
                               Write write, PoolingDivisor divisor = PoolingDivisor::padded);

 private:
  /// Averages a window of all positions: its sum is as accurate as the sum of a few.
  template <class Scalar>
  static void average_of_all(Stream stream, PoolingShape const& s, Vector<Scalar const> x, Vector<Scalar> y);
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static bool wins(Scalar x, Scalar best) noexcept {
    return x > best || x != x;
  }
  /// Positions of x, along each axis, that one output position reads.
  struct Window {
    Extents<3> begin, end;
    Window(PoolingShape const& s, Index position) noexcept;
    [[nodiscard]] Index first_position(PoolingShape const& s) const noexcept;
    template <class Function>
    [[gnu::always_inline]] void for_positions(PoolingShape const& s, Function&& f) const noexcept {
      for (Index d = begin[0]; d < end[0]; ++d)
        for (Index h = begin[1]; h < end[1]; ++h)
          for (Index w = begin[2]; w < end[2]; ++w) f((d * s.extent[1] + h) * s.extent[2] + w);
    }
  };

  /// Calls f(row, position, window) for each output position, on the threads of the pool.
  template <class Function>
  static void for_windows(Stream stream, PoolingShape const& s, Function const& f);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/pooling/spatial_pooling.ipp>
#endif
