// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// A tensor y whose axes are those of a tensor x in another order. Axes of extent 1 are left out, and axes that stay
/// next to each other are one axis.
struct PermuteShape {
  static constexpr std::size_t max_rank = 8;  ///< most axes of x

  std::size_t rank = 0;                    ///< axes of y
  std::array<Index, max_rank> extent{};    ///< of y, the outermost first
  std::array<Index, max_rank> distance{};  ///< in x, between adjacent positions of an axis of y

  /// Makes the shape of y, whose axis k is axis axes[k] of x.
  /// @shape extent_of_x, axes [at most max_rank]: axes has each of 0, 1, … once
  [[nodiscard]] static constexpr PermuteShape of(std::span<Index const> extent_of_x, std::span<int const> axes) {
    PermuteShape s;
    for (auto const axis : axes) {
      auto const at = static_cast<std::size_t>(axis);
      if (extent_of_x[at] == 1) continue;
      Index step = 1;
      for (auto k = at + 1; k < extent_of_x.size(); ++k) step *= extent_of_x[k];
      if (s.rank > 0 && s.distance[s.rank - 1] == step * extent_of_x[at]) {
        s.extent[s.rank - 1] *= extent_of_x[at];
        s.distance[s.rank - 1] = step;
      } else {
        s.extent[s.rank] = extent_of_x[at];
        s.distance[s.rank++] = step;
      }
    }
    return s;
  }
  /// Returns the number of elements.
  [[nodiscard]] constexpr Index size() const noexcept {
    Index count = 1;
    for (std::size_t k = 0; k < rank; ++k) count *= extent[k];
    return count;
  }
  /// Returns the place in x of element i of y.
  [[nodiscard]] constexpr Index source(Index i) const noexcept {
    Index place = 0;
    for (auto k = rank; k-- > 0; i /= extent[k]) place += i % extent[k] * distance[k];
    return place;
  }
};

/// Permutes the axes of a tensor.
template <class Space>
struct Permute : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Permute<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y[i] = x[s.source(i)], or adds it to y[i].
  /// @shape x, y [s.size()]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void run(Stream stream, PermuteShape const& s, Vector<Scalar const> x, Vector<Scalar> y, Write write) {
    if (s.size() == 0) return;
    if (s.rank == 0 || s.distance[s.rank - 1] == 1) return run_lines(stream, s, x, y, write);
    // The last axis of x is another axis of y: tiles of both axes are transposed, so that lines of memory are reused.
    std::size_t const last = s.rank - 1;
    auto across = last;
    for (std::size_t k = 0; k < last; ++k)
      if (s.distance[k] == 1) across = k;
    Index step = 1;  // in y, between adjacent positions of that axis
    for (auto k = across + 1; k < s.rank; ++k) step *= s.extent[k];
    Index const rows = s.extent[across], columns = s.extent[last], tiles = (rows + tile - 1) / tile,
                outer = s.size() / (rows * columns);
    auto const each = std::max<Index>(1, elements_per_task / (tile * columns));
    stream.pool().for_ranges(outer * tiles, each, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        Index from = 0, to = 0, rest = i / tiles, place = columns;  // of the tile's first elements
        for (auto k = last; k-- > 0; place *= s.extent[k]) {
          if (k == across) continue;
          from += rest % s.extent[k] * s.distance[k];
          to += rest % s.extent[k] * place;
          rest /= s.extent[k];
        }
        Index const first = i % tiles * tile, count = std::min(tile, rows - first);
        auto const* const source = x.data + from + first;
        auto* const target = y.data + to + first * step;
        for (Index begin_column = 0; begin_column < columns; begin_column += tile)
          for (Index row = 0; row < count; ++row)
            for (Index c = begin_column, stop = std::min(columns, begin_column + tile); c < stop; ++c)
              put(source[row + c * s.distance[last]], target[row * step + c], write);
      }
    });
  }

 private:
  static constexpr Index tile = 32, elements_per_task = 16384;

  /// Copies or adds whole lines: the last axis of x is that of y.
  template <class Scalar>
  static void run_lines(Stream stream, PermuteShape const& s, Vector<Scalar const> x, Vector<Scalar> y, Write write) {
    Index const line = s.rank == 0 ? 1 : s.extent[s.rank - 1];
    stream.pool().for_ranges(s.size() / line, std::max<Index>(1, elements_per_task / line),
                             [=](Index begin, Index end) {
                               for (Index i = begin; i < end; ++i) {
                                 auto const* const from = x.data + s.source(i * line);
                                 auto* const to = y.data + i * line;
                                 for (Index c = 0; c < line; ++c) put(from[c], to[c], write);
                               }
                             });
  }
  template <class Scalar>
  static void put(Scalar value, Scalar& to, Write write) noexcept {
    to = write == Write::overwrite ? value : to + value;
  }
};

}}}  // namespace lockstep::kernel
