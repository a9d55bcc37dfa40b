// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/for_lines.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Upsampling of an image by `factor`. Missing dimensions of space come first and have extent 1.
///
/// Nearest-neighbour upsampling makes of each position a block of equal ones: `source` and `for_copies`. Linear
/// upsampling interpolates between the centers of adjacent positions: position o of y is at (o + 1/2) / factor - 1/2 in
/// x, and values before the first center or after the last are constant: `for_sources` and `for_targets`. If `aligned`,
/// the centers of the outer positions of y are those of x: position o of n is at o (extent - 1) / (n - 1).
struct UpsampleShape {
  Index rows = 0;              ///< samples
  Index channels = 1;          ///< of x and y, in the last axis
  Extents<3> extent{1, 1, 1};  ///< of x
  Extents<3> factor{1, 1, 1};  ///< positions of y per position of x, along each axis
  bool aligned = false;        ///< whether linear upsampling aligns the centers of the outer positions

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

  /// Returns the weight of a position of x in a position of y, along an axis, in linear upsampling.
  template <class Real>
  [[nodiscard]] constexpr Real weight(std::size_t axis, Index position, Index source) const noexcept {
    Index const unit = scale(axis), distance = scaled_place(axis, position) - unit * source;
    if (distance > 0 && source == extent[axis] - 1) return 1;
    return static_cast<Real>(std::max<Index>(0, unit - (distance < 0 ? -distance : distance))) /
           static_cast<Real>(unit);
  }
  /// Calls f(position of x, weight) for the one or two positions of x, along an axis, between which a position of y is
  /// interpolated, in order.
  template <class Real, class Function>
  constexpr void for_sources(std::size_t axis, Index position, Function const& f) const {
    Index const first = scaled_place(axis, position) / scale(axis), second = first + 1;
    f(first, weight<Real>(axis, position, first));
    if (second == extent[axis]) return;
    if (auto const share = weight<Real>(axis, position, second); share > 0) f(second, share);
  }
  /// Calls f(position of y, weight) for each position of y, along an axis, that a position of x takes part in, in
  /// order.
  template <class Real, class Function>
  constexpr void for_targets(std::size_t axis, Index position, Function const& f) const {
    Index const first = std::max<Index>(0, first_from(axis, position - 1)), end = first_from(axis, position + 1);
    for (Index i = first; i < end; ++i)
      if (auto const share = weight<Real>(axis, i, position); share > 0) f(i, share);
  }
  /// Returns the first position of y, along an axis, that is not before a position of x, in linear upsampling. All are
  /// before the end of x.
  [[nodiscard]] constexpr Index first_from(std::size_t axis, Index source) const noexcept {
    Index const all = extent[axis] * factor[axis], steps = extent[axis] - 1;
    if (source > steps || steps == 0) return source < 1 ? 0 : all;
    if (aligned) return source <= 0 ? 0 : (source * scale(axis) + steps - 1) / steps;
    return std::min(all, source * factor[axis] + factor[axis] / 2);
  }

 private:
  /// Returns the number by which places are multiplied to be integers: distances are multiples of its inverse.
  [[nodiscard]] constexpr Index scale(std::size_t axis) const noexcept {
    return aligned ? std::max<Index>(1, extent[axis] * factor[axis] - 1) : 2 * factor[axis];
  }
  /// Returns the place of a position of y in x, along an axis, times the scale.
  [[nodiscard]] constexpr Index scaled_place(std::size_t axis, Index position) const noexcept {
    return aligned ? position * (extent[axis] - 1) : std::max<Index>(0, 2 * position + 1 - factor[axis]);
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

  /// Computes y by linear interpolation, in two dimensions bilinear, like PyTorch's with align_corners=s.aligned.
  /// @shape x [rows, extent…, channels]   @shape y [rows, extent * factor…, channels], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void linear(Stream stream, UpsampleShape const& s, Vector<Scalar const> x, Vector<Scalar> y) {
    detail::for_lines(stream, s.rows, s.result(), s.channels, [=](Index row, Index d, Index h, Index line) {
      WeightedLines<Scalar> lines;
      s.for_sources<Scalar>(0, d, [&](Index from_d, Scalar weight_d) {
        s.for_sources<Scalar>(1, h, [&](Index from_h, Scalar weight_h) {
          auto const from = ((row * s.extent[0] + from_d) * s.extent[1] + from_h) * s.extent[2];
          lines.add(x.data + from * s.channels, weight_d * weight_h);
        });
      });
      auto* const to = y.data + line * s.result()[2] * s.channels;
      auto* const last = to + (s.result()[2] - s.extent[2]) * s.channels;  // positions of the line of y
      lines.sum(s.extent[2] * s.channels, last);
      if (s.factor[2] > 1) interpolate_line(s, last, to);
    });
  }

  /// Computes dx = the sum of dy times the weight of each position of x in it, in order, or adds it to dx.
  template <class Scalar>
  static void linear_backward(Stream stream, UpsampleShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx,
                              Write write) {
    auto const to = s.result();
    detail::for_lines(stream, s.rows, s.extent, s.channels, [=](Index row, Index d, Index h, Index line) {
      auto* __restrict const sums = dx.data + line * s.extent[2] * s.channels;
      if (write == Write::overwrite) std::fill_n(sums, s.extent[2] * s.channels, Scalar{0});
      s.for_targets<Scalar>(0, d, [=](Index at_d, Scalar weight_d) {
        s.for_targets<Scalar>(1, h, [=](Index at_h, Scalar weight_h) {
          auto const* const from = dy.data + ((row * to[0] + at_d) * to[1] + at_h) * to[2] * s.channels;
          for (Index w = 0; w < s.extent[2]; ++w)
            s.for_targets<Scalar>(2, w, [=](Index at_w, Scalar weight_w) {
              auto const weight = weight_d * weight_h * weight_w;
              for (Index c = 0; c < s.channels; ++c) sums[w * s.channels + c] += weight * from[at_w * s.channels + c];
            });
        });
      });
    });
  }

 private:
  /// Lines of x and their weights: 1, 2 or 4.
  template <class Scalar>
  struct WeightedLines {
    Scalar const* from[4];
    Scalar weights[4];
    int count = 0;

    void add(Scalar const* line, Scalar weight) noexcept {
      from[count] = line;
      weights[count++] = weight;
    }
    [[gnu::always_inline]] void sum(Index size, Scalar* to) const noexcept {
      if (count == 1) return sum_of<1>(size, to);
      if (count == 2) return sum_of<2>(size, to);
      sum_of<4>(size, to);
    }
    template <int terms>
    [[gnu::always_inline]] void sum_of(Index size, Scalar* __restrict to) const noexcept {
      for (Index i = 0; i < size; ++i) {
        Scalar sum = 0;
        for (int term = 0; term < terms; ++term) sum += weights[term] * from[term][i];
        to[i] = sum;
      }
    }
  };

  /// Interpolates along the last axis. `x` may be the last positions of the line of y: then position w of y is not
  /// after the positions of x that it and later ones read.
  template <class Scalar>
  [[gnu::always_inline]] static void interpolate_line(UpsampleShape const& s, Scalar const* x, Scalar* y) noexcept {
    Index const end = s.extent[2], channels = s.channels;
    Index w = 0;
    for (Index second = 0; second <= end; ++second)  // between positions second - 1 and second of x
      for (Index const next = s.first_from(2, second); w < next; ++w) {
        auto const* const a = x + std::max<Index>(0, second - 1) * channels;
        auto* const to = y + w * channels;
        auto const share = second == 0 || second == end ? Scalar{0} : s.weight<Scalar>(2, w, second);
        if (share == 0) {
          for (Index c = 0; c < channels; ++c) to[c] = a[c];
          continue;
        }
        auto const rest = s.weight<Scalar>(2, w, second - 1);
        for (Index c = 0; c < channels; ++c) to[c] = rest * a[c] + share * a[channels + c];
      }
  }
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
