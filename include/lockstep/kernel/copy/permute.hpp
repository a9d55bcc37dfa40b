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

namespace detail {

/// A permutation that moves the last axis of x, as transposed matrices: a row of x is a column of y. Rows have
/// `columns()` elements, which are adjacent in y, and columns have `rows()` elements, which are adjacent in x.
struct TransposedMatrices {
  PermuteShape shape;
  std::size_t last, across;  // axes of y: its last one, and the last one of x
  Index row_step = 1;        // in y, between adjacent rows; in x it is 1
  Index column_step;         // in x, between adjacent columns; in y it is 1

  explicit constexpr TransposedMatrices(PermuteShape const& s)
      : shape(s), last(s.rank - 1), across(0), column_step(s.distance[s.rank - 1]) {
    while (s.distance[across] != 1) ++across;
    for (auto k = across + 1; k < s.rank; ++k) row_step *= s.extent[k];
  }
  /// Whether the last axis of x is another axis of y.
  [[nodiscard]] static constexpr bool describe(PermuteShape const& s) noexcept {
    return s.rank > 0 && s.distance[s.rank - 1] != 1;
  }
  [[nodiscard]] constexpr Index rows() const noexcept { return shape.extent[across]; }
  [[nodiscard]] constexpr Index columns() const noexcept { return shape.extent[last]; }
  [[nodiscard]] constexpr Index count() const noexcept { return shape.size() / (rows() * columns()); }

  struct Place {
    Index x = 0, y = 0;
  };
  /// Returns the first elements of matrix i.
  [[nodiscard]] constexpr Place begin(Index i) const noexcept {
    Place at;
    Index step = columns();
    for (auto k = last; k-- > 0; step *= shape.extent[k]) {
      if (k == across) continue;
      at.x += i % shape.extent[k] * shape.distance[k];
      at.y += i % shape.extent[k] * step;
      i /= shape.extent[k];
    }
    return at;
  }
};

}  // namespace detail

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
    if (!detail::TransposedMatrices::describe(s)) return run_lines(stream, s, x, y, write);
    // Tiles are transposed, so that lines of memory are reused.
    detail::TransposedMatrices const matrices(s);
    Index const columns = matrices.columns(), tiles = (matrices.rows() + tile - 1) / tile;
    auto const each = std::max<Index>(1, elements_per_task / (tile * columns));
    stream.pool().for_ranges(matrices.count() * tiles, each, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        auto const at = matrices.begin(i / tiles);
        Index const first = i % tiles * tile, count = std::min(tile, matrices.rows() - first);
        auto const* const source = x.data + at.x + first;
        auto* const target = y.data + at.y + first * matrices.row_step;
        for (Index begin_column = 0; begin_column < columns; begin_column += tile)
          for (Index row = 0; row < count; ++row)
            for (Index c = begin_column, stop = std::min(columns, begin_column + tile); c < stop; ++c)
              put(source[row + c * matrices.column_step], target[row * matrices.row_step + c], write);
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
