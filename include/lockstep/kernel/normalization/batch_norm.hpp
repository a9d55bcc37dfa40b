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

/// Normalisation of each channel over all samples and positions. With a layout, rows that are not tokens are neither
/// read nor counted.
template <class Space>
struct BatchNorm : detail::NotIncluded<Space> {};

template <>
struct BatchNorm<HostSpace> : detail::KernelTypes<HostSpace> {
  using Layout = SequenceLayout<HostSpace>;

  /// Statistics that normalise each channel: mean, reciprocal = 1 / sqrt(variance + epsilon), scale = weight *
  /// reciprocal.
  template <class T>
  struct Statistics {
    Vector<T> mean, reciprocal, scale;  // [channels]
  };
  /// Running averages for evaluation.
  template <class T>
  struct Running {
    Vector<T> mean, variance;  // [channels]
  };

  /// Returns the number of elements that `measure`, `moments`, `backward` and `sums` need for their partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index channels) noexcept {
    return chunks(rows, channels) * (2 * channels + 1);
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
  template <class T>
  static void measure(Stream stream, Matrix<T const> x, Vector<T const> weight, double epsilon, double momentum,
                      Running<T> running, Statistics<T> statistics, T* partial, Layout const& layout = {});

  /// First half of `measure` over the rows of several replicas: computes the moments of this replica's rows.
  /// @shape to [moment_elements(channels)]
  template <class T>
  static void moments(Stream stream, Matrix<T const> x, T* partial, double* to, Layout const& layout = {});
  /// Second half: merges the moments of all replicas in order and computes the statistics.
  /// @shape moments [replicas, moment_elements(channels)]
  template <class T>
  static void measure_merged(Stream, Index replicas, double const* moments, Vector<T const> weight, double epsilon,
                             double momentum, Running<T> running, Statistics<T> statistics);

  /// Computes the statistics from the running averages.
  template <class T>
  static void use_running_averages(Stream, Running<T> running, Vector<T const> weight, double epsilon,
                                   Statistics<T> statistics);

  /// Computes y = activation((x - mean) * scale + bias).
  /// @shape x, y [rows, channels]; y may be x, and is zero in padding   @shape bias [channels]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Statistics<T> statistics, Vector<T const> bias,
                      Activation activation, Matrix<T> y, Layout const& layout = {});

  /// Computes the gradients for n rows. Let g = dy where the activation passed y, else 0, and z = (x - mean) *
  /// reciprocal. Then dbias = sum g, dweight = sum g z, and dx = scale * (g - dbias / n - z dweight / n). Overwrites or
  /// adds to each. Skips a null dx. Recomputes which elements the activation passed, so y is not kept.
  /// @shape dy, x, dx [rows, channels]; dx may be dy, and is zero in padding   @shape bias, dweight, dbias [channels]
  /// @shape partial [partial_elements(rows, channels)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics,
                       Vector<T const> bias, Activation activation, Matrix<T> dx, Write dx_write, Vector<T> dweight,
                       Write dweight_write, Vector<T> dbias, Write dbias_write, T* partial, Layout const& layout = {});

  /// First of three steps of `backward` over the rows of several replicas: computes this replica's sums, which are also
  /// its dbias and dweight.
  /// @shape to [2, channels]: of g, and of g z
  template <class T>
  static void sums(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics, Vector<T const> bias,
                   Activation activation, Vector<T> dweight, Write dweight_write, Vector<T> dbias, Write dbias_write,
                   T* partial, T* to, Layout const& layout = {});
  /// Second step: computes the means of all replicas' sums over the rows that their moments count.
  /// @shape sums [replicas, 2, channels]   @shape to [2, channels]   @shape moments as in `measure_merged`
  template <class T>
  static void means(Stream, Index replicas, Index channels, T const* sums, double const* moments, T* to);
  /// Third step: computes this replica's dx from the means.
  /// @shape means [2, channels]
  template <class T>
  static void input_gradient(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics,
                             Vector<T const> bias, Activation activation, T const* means, Matrix<T> dx, Write dx_write,
                             Layout const& layout = {});

 private:
  /// Computes for each chunk of rows the mean and the squares of the differences from it, then the chunks' numbers of
  /// rows.
  template <class T>
  static void measure_chunks(Stream stream, Matrix<T const> x, T* partial, Layout const& layout);
  /// Returns a channel's moments, merged over all chunks in order.
  template <class T>
  [[nodiscard]] static detail::Moments merged(Extents<2> x, T const* partial, Index c) noexcept;
  template <class T>
  static void update_statistics(Index c, detail::Moments const& all, Vector<T const> weight, double epsilon,
                                double momentum, Running<T> running, Statistics<T> statistics);
  /// Computes for each chunk of rows the sums of g and of g z.
  template <class T>
  static void sum_chunks(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<T> statistics,
                         Vector<T const> bias, Activation activation, T* partial, Layout const& layout);
  /// Returns a channel's sums over all chunks, in order.
  template <class T>
  [[nodiscard]] static std::pair<double, double> summed(Extents<2> x, T const* partial, Index c) noexcept;
  /// Sets rows that are not tokens to zero.
  template <class T>
  static void clear_padding(Layout const& layout, Index begin, Index end, Matrix<T> y) noexcept;
  /// Returns the rows that share a partial sum: as many as stay in the first two caches for a second pass.
  [[nodiscard]] static constexpr Index chunk_rows(Index channels) noexcept {
    return std::max<Index>(1, 16384 / std::max<Index>(1, channels));
  }
  [[nodiscard]] static constexpr Index chunks(Index rows, Index channels) noexcept {
    return (rows + chunk_rows(channels) - 1) / chunk_rows(channels);
  }
  template <class T>
  static void set(Statistics<T> const& to, Index c, double mean, double variance, Vector<T const> weight,
                  double epsilon);
  template <class T>
  static void write(T& to, T value, Write how) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/batch_norm.ipp>
#endif
