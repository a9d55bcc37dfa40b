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
  template <class Scalar>
  struct Statistics {
    Scalar *mean, *reciprocal;  // [rows, channels]
  };

  /// Returns the number of elements that `measure` and `backward` need for their partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Shape const& s) noexcept {
    return 2 * s.rows * (chunks(s) + 1) * s.channels;
  }

  /// Computes the statistics of x without cancellation. Centres each channel of a chunk of positions on its own mean
  /// while in cache, and merges the chunks in order, in double.
  /// @shape x [rows, positions, channels]   @shape partial [partial_elements(s)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void measure(Stream stream, Shape const& s, Scalar const* x, double epsilon, Statistics<Scalar> statistics,
                      Scalar* partial);

  /// Computes y = activation((x - mean) * reciprocal * weight + bias).
  /// @shape x, y [rows, positions, channels]; y may be x   @shape weight, bias [channels]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Shape const& s, Scalar const* x, Statistics<Scalar> statistics,
                      Scalar const* weight, Scalar const* bias, Activation activation, Scalar* y);

  /// Computes the gradients. Let g = dy where the activation passed y, else 0, and z = (x - mean) * reciprocal. Then
  /// dbias = sum g and dweight = sum g z over all samples and positions. dx = reciprocal * (weight g - a - z b). Here a
  /// and b are the means of weight g and of weight g z over the sample's group. Overwrites or adds to each. Skips a
  /// null dx. Recomputes which elements the activation passed, so y is not kept.
  /// @shape dy, x, dx [rows, positions, channels]; dx may be dy   @shape partial [partial_elements(s)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward(Stream stream, Shape const& s, Scalar const* dy, Scalar const* x, Statistics<Scalar> statistics,
                       Scalar const* weight, Scalar const* bias, Activation activation, Scalar* dx, Write dx_write,
                       Scalar* dweight, Write dweight_write, Scalar* dbias, Write dbias_write, Scalar* partial);

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
  template <class Function>
  static void for_chunks(Stream stream, Shape const& s, Function const& f);
  template <class Scalar>
  static void put(Scalar& to, Scalar value, Write how) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/group_norm.ipp>
#endif
