// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/normalization/batch_norm.hpp>
#include <lockstep/kernel/normalization/detail/moments.hpp>
#include <lockstep/kernel/normalization/detail/tokens_between.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail {
template <class Scalar>
struct ChannelStatistics;
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, chunks of rows merged
/// in order
template <>
struct BatchNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Layout = SequenceLayout<CudaSpace>;  ///< tokens of each sequence; rows that are not tokens do not count

  /// Statistics that normalize each channel, in device memory.
  template <class Scalar>
  struct Statistics {
    Vector<Scalar> mean;        ///< [channels]
    Vector<Scalar> reciprocal;  ///< [channels]: 1 / sqrt(variance + epsilon)
    Vector<Scalar> scale;       ///< [channels]: weight * reciprocal
  };
  /// Running averages for evaluation, in device memory.
  template <class Scalar>
  struct Running {
    Vector<Scalar> mean;      ///< [channels]
    Vector<Scalar> variance;  ///< [channels]
  };

  /// Returns the number of elements that `measure`, `moments`, `backward` and `sums` need for their partial sums.
  [[nodiscard]] static Index partial_elements(Index rows, Index channels) noexcept;
  /// Returns the length of one replica's moments: number of rows, then the mean of each channel, then its squares.
  [[nodiscard]] static constexpr Index moment_elements(Index channels) noexcept { return 1 + 2 * channels; }

  /// Computes the statistics of x and updates the running averages, as on the host.
  template <class Scalar>
  static void measure(Stream stream, Matrix<Scalar const> x, Vector<Accumulate<Scalar> const> weight, double epsilon,
                      double momentum, Running<Accumulate<Scalar>> running, Statistics<Accumulate<Scalar>> statistics,
                      Accumulate<Scalar>* partial, Layout const& layout = {});

  /// First half of `measure` over the rows of several replicas: computes the moments of this replica's rows.
  /// @shape to [moment_elements(channels)] in device memory
  template <class Scalar>
  static void moments(Stream stream, Matrix<Scalar const> x, Accumulate<Scalar>* partial, double* to,
                      Layout const& layout = {});
  /// Second half: merges the moments of all replicas in order and computes the statistics.
  /// @shape moments [replicas, moment_elements(channels)] in device memory
  template <class Scalar>
  static void measure_merged(Stream stream, Index replicas, double const* moments, Vector<Scalar const> weight,
                             double epsilon, double momentum, Running<Scalar> running, Statistics<Scalar> statistics);

  /// Computes the statistics from the running averages.
  template <class Scalar>
  static void use_running_averages(Stream stream, Running<Scalar> running, Vector<Scalar const> weight, double epsilon,
                                   Statistics<Scalar> statistics);

  /// Computes y = activation((x - mean) * scale + bias).
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Statistics<Accumulate<Scalar>> statistics,
                      Vector<Accumulate<Scalar> const> bias, Activation activation, Matrix<Scalar> y,
                      Layout const& layout = {});

  /// Computes dx, dweight and dbias, by the host's formulas; overwrites or adds to each. Skips a null dx.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                       Statistics<Accumulate<Scalar>> statistics, Vector<Accumulate<Scalar> const> bias,
                       Activation activation, Matrix<Scalar> dx, Write dx_write, Vector<Accumulate<Scalar>> dweight,
                       Write dweight_write, Vector<Accumulate<Scalar>> dbias, Write dbias_write,
                       Accumulate<Scalar>* partial, Layout const& layout = {});

  /// First of three steps of `backward` over the rows of several replicas: computes this replica's sums.
  /// @shape to [2, channels] in device memory
  template <class Scalar>
  static void sums(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                   Statistics<Accumulate<Scalar>> statistics, Vector<Accumulate<Scalar> const> bias,
                   Activation activation, Vector<Accumulate<Scalar>> dweight, Write dweight_write,
                   Vector<Accumulate<Scalar>> dbias, Write dbias_write, Accumulate<Scalar>* partial,
                   Accumulate<Scalar>* to, Layout const& layout = {});
  /// Second step: computes the means of all replicas' sums over the rows that their moments count.
  template <class Scalar>
  static void means(Stream stream, Index replicas, Index channels, Scalar const* sums, double const* moments,
                    Scalar* to);
  /// Third step: computes this replica's dx from the means.
  template <class Scalar>
  static void input_gradient(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                             Statistics<Accumulate<Scalar>> statistics, Vector<Accumulate<Scalar> const> bias,
                             Activation activation, Accumulate<Scalar> const* means, Matrix<Scalar> dx, Write dx_write,
                             Layout const& layout = {});

 private:
  template <class Scalar>
  static void measure_chunks(char const* name, Stream stream, Matrix<Scalar const> x, Layout const& layout,
                             Accumulate<Scalar>* partial);
  template <class Scalar>
  [[nodiscard]] static detail::ChannelStatistics<Scalar> channels_of(Statistics<Scalar> const& s) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/batch_norm.icuh>
#endif
