// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/column_lanes.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Samples of `positions` positions and `channels` channels. Groups of adjacent channels are normalised together.
struct GroupNormShape {
  Index rows, positions, channels, groups;

  [[nodiscard]] constexpr Index group_channels() const noexcept { return channels / groups; }
  /// Returns the number of elements that are normalised together.
  [[nodiscard]] constexpr Index group_size() const noexcept { return positions * group_channels(); }
  [[nodiscard]] constexpr Index size() const noexcept { return rows * positions * channels; }
};

/// Normalisation of groups of channels over all positions of each sample.
template <class Space>
struct GroupNorm : detail::NotIncluded<Space> {};

template <>
struct GroupNorm<HostSpace> : detail::KernelTypes<HostSpace> {
  using Shape = GroupNormShape;

  /// Statistics that normalise each channel of each sample: mean, and 1 / sqrt(variance + epsilon). They are equal
  /// within a group.
  template <class T>
  struct Statistics {
    T *mean, *reciprocal;  // [rows, channels]
  };

  /// Returns the number of elements that `measure` and `backward` need for their partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Shape const& s) noexcept {
    return 2 * s.rows * (chunks(s) + 1) * s.channels;
  }

  /// Computes the statistics of x without cancellation. Centres each channel of a chunk of positions on its own mean
  /// while in cache, and merges the chunks in order, in double.
  /// @shape x [rows, positions, channels]   @shape partial [partial_elements(s)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void measure(Stream stream, Shape const& s, T const* x, double epsilon, Statistics<T> statistics, T* partial);

  /// Computes y = activation((x - mean) * reciprocal * weight + bias).
  /// @shape x, y [rows, positions, channels]; y may be x   @shape weight, bias [channels]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void forward(Stream stream, Shape const& s, T const* x, Statistics<T> statistics, T const* weight,
                      T const* bias, Activation activation, T* y);

  /// Computes the gradients. Let g = dy where the activation passed y, else 0, and z = (x - mean) * reciprocal. Then
  /// dbias = sum g and dweight = sum g z over all samples and positions. dx = reciprocal * (weight g - a - z b). Here a
  /// and b are the means of weight g and of weight g z over the sample's group. Overwrites or adds to each. Skips a
  /// null dx. Recomputes which elements the activation passed, so y is not kept.
  /// @shape dy, x, dx [rows, positions, channels]; dx may be dy   @shape partial [partial_elements(s)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, Shape const& s, T const* dy, T const* x, Statistics<T> statistics,
                       T const* weight, T const* bias, Activation activation, T* dx, Write dx_write, T* dweight,
                       Write dweight_write, T* dbias, Write dbias_write, T* partial);

 private:
  static constexpr Index rows_per_task = 8;

  /// Returns the positions of a sample that share a partial sum: as many as stay in the first two caches for a second
  /// pass.
  [[nodiscard]] static constexpr Index chunk_positions(Shape const& s) noexcept {
    return std::max<Index>(1, 16384 / std::max<Index>(1, s.channels));
  }
  [[nodiscard]] static constexpr Index chunks(Shape const& s) noexcept {
    return (s.positions + chunk_positions(s) - 1) / chunk_positions(s);
  }
  /// Calls f(row, chunk, first position, end) for all chunks of all samples.
  template <class F>
  static void for_chunks(Stream stream, Shape const& s, F const& f);
  template <class T>
  static void put(T& to, T value, Write how) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/group_norm.ipp>
#endif
