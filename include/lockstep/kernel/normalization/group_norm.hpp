// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/column_lanes.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/normalization/detail/moments.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Samples of `positions` positions and `channels` channels. Groups of adjacent channels are normalized together.
struct GroupNormShape {
  Index rows;       ///< samples
  Index positions;  ///< of each sample
  Index channels;   ///< of each position
  Index groups;     ///< groups of channels, a divisor of `channels`

  /// Returns the channels of a group.
  [[nodiscard]] constexpr Index group_channels() const noexcept { return channels / groups; }
  /// Returns the number of elements that are normalized together.
  [[nodiscard]] constexpr Index group_size() const noexcept { return positions * group_channels(); }
  /// Returns the elements of x.
  [[nodiscard]] constexpr Index size() const noexcept { return rows * positions * channels; }
};

/// Normalization of groups of channels over all positions of each sample.
template <class Space>
struct GroupNorm : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct GroupNorm<HostSpace> : detail::KernelTypes<HostSpace> {
  using Shape = GroupNormShape;  ///< extents of x

  /// Statistics that normalize each channel of each sample. They are equal within a group.
  template <class Scalar>
  struct Statistics {
    Scalar* mean;        ///< [rows, channels]
    Scalar* reciprocal;  ///< [rows, channels]: 1 / sqrt(variance + epsilon)
  };

  /// Returns the number of elements that `forward` and `backward` need for their partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Shape const& s) noexcept {
    return s.rows * (3 * std::max<Index>(1, chunks(s)) + 2) * s.channels;
  }

  /// Computes the statistics of x, and y = activation((x - mean) * reciprocal * weight + bias). The statistics are free
  /// of cancellation: each channel of a chunk of positions is centred on its own mean while in cache, and the chunks
  /// are merged in order, in double.
  /// @shape x, y [rows, positions, channels]; y may be x   @shape weight, bias [channels]
  /// @shape partial [partial_elements(s)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Shape const& s, Scalar const* x, double epsilon, Statistics<Scalar> statistics,
                      Scalar const* weight, Scalar const* bias, Activation activation, Scalar* y, Scalar* partial);

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
  /// Chunks of a sample that stay in the second-level cache between the two passes over a sample.
  static constexpr Index cached_chunks = 8;

  /// Returns the positions of a sample that share a partial sum: as many as stay in the first two caches for a second
  /// pass.
  [[nodiscard]] static constexpr Index chunk_positions(Shape const& s) noexcept {
    return std::max<Index>(1, 16384 / std::max<Index>(1, s.channels));
  }
  [[nodiscard]] static constexpr Index chunks(Shape const& s) noexcept {
    return (s.positions + chunk_positions(s) - 1) / chunk_positions(s);
  }
  /// Returns the sums of a chunk, [3, channels]. Row s.rows follows all chunks.
  template <class Scalar>
  [[nodiscard]] static Scalar* sums_of(Shape const& s, Scalar* partial, Index row, Index chunk) noexcept;
  /// Calls first(row, chunk, begin, end) for each chunk of a sample, then between(row), then second(row, chunk, begin,
  /// end) for each chunk. A sample that stays in cache is completed before the next.
  template <class First, class Between, class Second>
  static void in_two_passes(Stream stream, Shape const& s, First const& first, Between const& between,
                            Second const& second);
  template <class Scalar>
  static void put(Scalar& to, Scalar value, Write how) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/group_norm.ipp>
#endif
