// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Nearest-neighbour upsampling of an image, whose positions become blocks of `factor` equal ones. Missing dimensions
/// of space come first and have extent 1.
struct UpsampleShape {
  Index rows = 0;              ///< samples
  Index channels = 1;          ///< of x and y, in the last axis
  Extents<3> extent{1, 1, 1};  ///< of x
  Extents<3> factor{1, 1, 1};  ///< positions of y per position of x, along each axis

  /// Returns the extents of y.
  [[nodiscard]] constexpr Extents<3> result() const noexcept {
    return {extent[0] * factor[0], extent[1] * factor[1], extent[2] * factor[2]};
  }
  /// Returns the number of elements of one sample of x.
  [[nodiscard]] constexpr Index input_size() const noexcept { return elements(extent) * channels; }
  /// Returns the number of elements of one sample of y.
  [[nodiscard]] constexpr Index output_size() const noexcept { return elements(result()) * channels; }
  /// Returns the position of x that a position of y copies.
  [[nodiscard]] constexpr Index source(Index position) const noexcept {
    auto const to = result();
    Index const d = position / (to[1] * to[2]), h = position / to[2] % to[1], w = position % to[2];
    return (d / factor[0] * extent[1] + h / factor[1]) * extent[2] + w / factor[2];
  }
  /// Calls f(position of y) for each copy of a position of x, in order.
  template <class Function>
  constexpr void for_copies(Index position, Function const& f) const {
    auto const to = result();
    Index const d = position / (extent[1] * extent[2]) * factor[0], h = position / extent[2] % extent[1] * factor[1],
                w = position % extent[2] * factor[2];
    for (Index i = d; i < d + factor[0]; ++i)
      for (Index j = h; j < h + factor[1]; ++j)
        for (Index k = w; k < w + factor[2]; ++k) f((i * to[1] + j) * to[2] + k);
  }
};

/// Copies each position of an image to a block of positions.
template <class Space>
struct Upsample : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Upsample<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y = x at the nearest position.
  /// @shape x [rows, extent…, channels]   @shape y [rows, extent * factor…, channels], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, UpsampleShape const& s, Vector<Scalar const> x, Vector<Scalar> y) {
    auto const positions = elements(s.result());
    for_positions(stream, s, positions, [=](Index row, Index position) {
      std::copy_n(x.data + row * s.input_size() + s.source(position) * s.channels, s.channels,
                  y.data + (row * positions + position) * s.channels);
    });
  }

  /// Computes dx = the sum of dy over the copies of each position of x, in order, or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, UpsampleShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx, Write write) {
    auto const positions = elements(s.extent);
    for_positions(stream, s, positions, [=](Index row, Index position) {
      auto* __restrict const to = dx.data + (row * positions + position) * s.channels;
      if (write == Write::overwrite) std::fill_n(to, s.channels, Scalar{0});
      s.for_copies(position, [=](Index copy) {
        auto const* const from = dy.data + row * s.output_size() + copy * s.channels;
        for (Index c = 0; c < s.channels; ++c) to[c] += from[c];
      });
    });
  }

 private:
  template <class Function>
  static void for_positions(Stream stream, UpsampleShape const& s, Index positions, Function const& f) {
    stream.pool().for_ranges(s.rows * positions, std::max<Index>(1, 8192 / std::max<Index>(1, s.channels)),
                             [=](Index begin, Index end) {
                               with_best_instructions([=] {
                                 for (Index i = begin; i < end; ++i) f(i / positions, i % positions);
                               });
                             });
  }
};

}}}  // namespace lockstep::kernel
