// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/column_lanes.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/normalization/detail/moments.hpp>
#include <lockstep/kernel/normalization/detail/tokens_between.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Normalization of each channel over all samples and positions. With a layout, rows that are not tokens are neither
/// read nor counted.
template <class Space>
struct BatchNorm : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct BatchNorm<HostSpace> : detail::KernelTypes<HostSpace> {
  using Layout = SequenceLayout<HostSpace>;  ///< tokens of each sequence; rows that are not tokens do not count

  /// Statistics that normalize each channel.
  template <class Scalar>
  struct Statistics {
    Vector<Scalar> mean;        ///< [channels]
    Vector<Scalar> reciprocal;  ///< [channels]: 1 / sqrt(variance + epsilon)
    Vector<Scalar> scale;       ///< [channels]: weight * reciprocal
  };
  /// Running averages for evaluation.
  template <class Scalar>
  struct Running {
    Vector<Scalar> mean;      ///< [channels]
    Vector<Scalar> variance;  ///< [channels]
  };

  /// Returns the number of elements that `measure`, `moments`, `backward` and `sums` need for their partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index channels) noexcept {
    return chunks(rows, channels) * (3 * channels + 1);
  }
  /// Returns the length of one replica's moments: number of rows, then the mean of each channel, then its squares.
  [[nodiscard]] static constexpr Index moment_elements(Index channels) noexcept { return 1 + 2 * channels; }

  /// Computes the statistics of x, with variance = sum (x - mean)^2 / rows, without cancellation. Centres each chunk of
  /// rows on its own mean while in cache, and merges the chunks in order, in double. Updates the running averages with
  /// weight `momentum` by mean and variance * rows / (rows - 1), if there are at least two rows. Uses all rows, or the
  /// tokens of the layout.
  /// @shape x [rows, channels]   @shape weight [channels]   @shape partial [partial_elements(rows, channels)]
  /// @determinism bitwise, for any number of threads
  /// @source Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances (1979)
  template <class Scalar>
  static void measure(Stream stream, Matrix<Scalar const> x, Vector<Scalar const> weight, double epsilon,
                      double momentum, Running<Scalar> running, Statistics<Scalar> statistics, Scalar* partial,
                      Layout const& layout = {});

  /// First half of `measure` over the rows of several replicas: computes the moments of this replica's rows.
  /// @shape to [moment_elements(channels)]
  template <class Scalar>
  static void moments(Stream stream, Matrix<Scalar const> x, Scalar* partial, double* to, Layout const& layout = {});
  /// Second half: merges the moments of all replicas in order and computes the statistics.
  /// @shape moments [replicas, moment_elements(channels)]
  template <class Scalar>
  static void measure_merged(Stream, Index replicas, double const* moments, Vector<Scalar const> weight, double epsilon,
                             double momentum, Running<Scalar> running, Statistics<Scalar> statistics);

  /// Computes the statistics from the running averages.
  template <class Scalar>
  static void use_running_averages(Stream, Running<Scalar> running, Vector<Scalar const> weight, double epsilon,
                                   Statistics<Scalar> statistics);

  /// Computes y = activation((x - mean) * scale + bias).
  /// @shape x, y [rows, channels]; y may be x, and is zero in padding   @shape bias [channels]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Statistics<Scalar> statistics, Vector<Scalar const> bias,
                      Activation activation, Matrix<Scalar> y, Layout const& layout = {});

  /// Computes the gradients for n rows. Let g = dy where the activation passed y, else 0, and z = (x - mean) *
  /// reciprocal. Then dbias = sum g, dweight = sum g z, and dx = scale * (g - dbias / n - z dweight / n). Overwrites or
  /// adds to each. Skips a null dx. Recomputes which elements the activation passed, so y is not kept.
  /// @shape dy, x, dx [rows, channels]; dx may be dy, and is zero in padding   @shape bias, dweight, dbias [channels]
  /// @shape partial [partial_elements(rows, channels)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Statistics<Scalar> statistics,
                       Vector<Scalar const> bias, Activation activation, Matrix<Scalar> dx, Write dx_write,
                       Vector<Scalar> dweight, Write dweight_write, Vector<Scalar> dbias, Write dbias_write,
                       Scalar* partial, Layout const& layout = {});

  /// First of three steps of `backward` over the rows of several replicas: computes this replica's sums, which are also
  /// its dbias and dweight.
  /// @shape to [2, channels]: of g, and of g z
  template <class Scalar>
  static void sums(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Statistics<Scalar> statistics,
                   Vector<Scalar const> bias, Activation activation, Vector<Scalar> dweight, Write dweight_write,
                   Vector<Scalar> dbias, Write dbias_write, Scalar* partial, Scalar* to, Layout const& layout = {});
  /// Second step: computes the means of all replicas' sums over the rows that their moments count.
  /// @shape sums [replicas, 2, channels]   @shape to [2, channels]   @shape moments as in `measure_merged`
  template <class Scalar>
  static void means(Stream, Index replicas, Index channels, Scalar const* sums, double const* moments, Scalar* to);
  /// Third step: computes this replica's dx from the means.
  /// @shape means [2, channels]
  template <class Scalar>
  static void input_gradient(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                             Statistics<Scalar> statistics, Vector<Scalar const> bias, Activation activation,
                             Scalar const* means, Matrix<Scalar> dx, Write dx_write, Layout const& layout = {});

 private:
  /// Computes for each chunk of rows the mean and the squares of the differences from it, then the chunks' numbers of
  /// rows.
  template <class Scalar>
  static void measure_chunks(Stream stream, Matrix<Scalar const> x, Scalar* partial, Layout const& layout);
  /// Returns a channel's moments, merged over all chunks in order.
  template <class Scalar>
  [[nodiscard]] static detail::Moments merged(Extents<2> x, Scalar const* partial, Index c) noexcept;
  template <class Scalar>
  static void update_statistics(Index c, detail::Moments const& all, Vector<Scalar const> weight, double epsilon,
                                double momentum, Running<Scalar> running, Statistics<Scalar> statistics);
  /// Computes for each chunk of rows the sums of g and of g z.
  template <class Scalar>
  static void sum_chunks(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Statistics<Scalar> statistics,
                         Vector<Scalar const> bias, Activation activation, Scalar* partial, Layout const& layout);
  /// Returns a channel's sums over all chunks, in order.
  template <class Scalar>
  [[nodiscard]] static std::pair<double, double> summed(Extents<2> x, Scalar const* partial, Index c) noexcept;
  /// Sets rows that are not tokens to zero.
  template <class Scalar>
  static void clear_padding(Layout const& layout, Index begin, Index end, Matrix<Scalar> y) noexcept;
  /// Returns the rows that share a partial sum: as many as stay in the first two caches for a second pass.
  [[nodiscard]] static constexpr Index chunk_rows(Index channels) noexcept {
    return std::max<Index>(1, 16384 / std::max<Index>(1, channels));
  }
  [[nodiscard]] static constexpr Index chunks(Index rows, Index channels) noexcept {
    return (rows + chunk_rows(channels) - 1) / chunk_rows(channels);
  }
  template <class Scalar>
  static void set(Statistics<Scalar> const& to, Index c, double mean, double variance, Vector<Scalar const> weight,
                  double epsilon);
  template <class Scalar>
  static void write(Scalar& to, Scalar value, Write how) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/batch_norm.ipp>
#endif
