// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/normalization/batch_norm.hpp>
#include <lockstep/kernel/normalization/detail/moments.hpp>
#include <lockstep/kernel/normalization/detail/tokens_between.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Statistics of each channel in BatchNorm's kernels.
template <class Sum>
struct ChannelStatistics {
  Sum *mean, *reciprocal, *scale;
};
/// Running averages of each channel.
template <class Sum>
struct RunningAverages {
  Sum *mean, *variance;
};

inline namespace LOCKSTEP_CUDA_ABI {

/// Computes the moments of a chunk of rows. One block processes 32 columns: their mean, and the squares of the
/// differences from it. The number of rows counted in each chunk follows after all chunks' moments.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void moments_of_chunks(Index rows, Index width, Scalar const* x, SequenceLayout<CudaSpace> layout,
                                            Accumulate<Scalar>* partial) {
  using Sum = Accumulate<Scalar>;
  auto const tiles = (width + warp - 1) / warp;
  auto const chunk = Index{blockIdx.x} / tiles, column = Index{blockIdx.x} % tiles * warp + lane();
  auto const begin = chunk * column_chunk(rows), end = min(rows, begin + column_chunk(rows));
  auto const first = begin + Index{threadIdx.x} / warp;
  Sum sum = 0, rest = 0, squares = 0, count = 0;
  for (auto row = first; column < width && row < end; row += warps_per_block) {
    if (!layout.is_token(row)) continue;
    sum += static_cast<Sum>(x[row * width + column]);
    ++count;
  }
  count = has_padding(layout) ? sum_of_column(count) : static_cast<Sum>(end - begin);
  Sum const mean = sum_of_column(sum) / count;  // NaN without rows, which no merge reads
  for (auto row = first; column < width && row < end; row += warps_per_block) {
    if (!layout.is_token(row)) continue;
    Sum const difference = static_cast<Sum>(x[row * width + column]) - mean;
    rest += difference;  // the rounding error of the first sum
    squares += difference * difference;
  }
  rest = sum_of_column(rest);
  squares = sum_of_column(squares);
  if (threadIdx.x >= warp || column >= width) return;
  partial[2 * chunk * width + column] = mean + rest / count;
  partial[(2 * chunk + 1) * width + column] = squares - rest * rest / count;
  if (column == 0) partial[2 * column_chunks(rows) * width + chunk] = count;
}

/// Returns the chunks' moments merged by one warp. Each lane merges every 32nd chunk in order, then the lanes merge in
/// a fixed tree.
template <class Sum>
[[nodiscard]] __device__ Moments moments_of_column(Sum const* partial, Index rows, Index width, Index column) noexcept {
  Moments moments;
  auto const chunks = column_chunks(rows);
  for (Index chunk = lane(); chunk < chunks; chunk += warp) {
    auto const* const of_chunk = partial + 2 * chunk * width + column;
    moments.merge({static_cast<double>(partial[2 * chunks * width + chunk]), static_cast<double>(of_chunk[0]),
                   static_cast<double>(of_chunk[width])});
  }
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
    Moments const other{__shfl_xor_sync(~0u, moments.count, distance), __shfl_xor_sync(~0u, moments.mean, distance),
                        __shfl_xor_sync(~0u, moments.squares, distance)};
    moments.merge(other);
  }
  return moments;  // lanes may differ in the last bit
}

/// Returns the number of tokens among `rows` rows. A warp counts them if there is padding.
[[nodiscard]] __device__ inline Index count_tokens(SequenceLayout<CudaSpace> const& layout, Index rows) noexcept {
  if (!has_padding(layout)) return rows;
  Index count = 0;
  for (Index row = lane(); row < layout.rows; row += warp) count += layout.tokens(row);
  return warp_sum(count);
}

/// Iterates over the elements of a matrix.
class MatrixStep {
 public:
  __device__ MatrixStep(SequenceLayout<CudaSpace> const& layout, Index width, Index at) noexcept
      : layout_(layout), width_(width), row_(at / width), column_(at % width), token_(layout.is_token(row_)) {}

  [[nodiscard]] __device__ Index column() const noexcept { return column_; }
  [[nodiscard]] __device__ bool is_token() const noexcept { return token_; }
  __device__ void next() noexcept {
    if (++column_ < width_) return;
    column_ = 0;
    ++row_;
    token_ = !has_padding(layout_) || (row_ < layout_.slots && layout_.is_token(row_));
  }

 private:
  SequenceLayout<CudaSpace> const& layout_;
  Index width_, row_, column_;
  bool token_;
};

template <class Sum>
__device__ void set_channel(ChannelStatistics<Sum> to, Index c, double mean, double variance, double weight,
                            double epsilon) {
  double const reciprocal = 1 / std::sqrt(variance + epsilon);
  to.mean[c] = static_cast<Sum>(mean);
  to.reciprocal[c] = static_cast<Sum>(reciprocal);
  to.scale[c] = static_cast<Sum>(reciprocal * weight);
}

/// Computes a channel's statistics from its moments, and updates its running averages.
template <class Sum>
__device__ void update_channel(ChannelStatistics<Sum> to, RunningAverages<Sum> running, Index c, Moments const& all,
                               double weight, double epsilon, double momentum) {
  set_channel(to, c, all.mean, all.count > 0 ? all.squares / all.count : 0, weight, epsilon);
  if (all.count < 2) return;
  auto const update_average = [=](Sum& average, double target) {
    average = static_cast<Sum>((1 - momentum) * static_cast<double>(average) + momentum * target);
  };
  update_average(running.mean[c], all.mean);
  update_average(running.variance[c], all.squares / (all.count - 1));
}

/// Computes the sums of g and of g z over all rows, in two rows of `sums`.
template <class Scalar>
void sum_of_rows(char const* name, memory::Stream<CudaSpace> stream, TensorView<Scalar const, 2, CudaSpace> dy,
                 TensorView<Scalar const, 2, CudaSpace> x, ChannelStatistics<Accumulate<Scalar>> of,
                 Accumulate<Scalar> const* bias, Activation activation, SequenceLayout<CudaSpace> layout,
                 Accumulate<Scalar>* partial, Accumulate<Scalar>* sums) {
  using Sum = Accumulate<Scalar>;
  auto const width = x.extent[1];
  sum_columns<Sum, 2>(name, stream, x.extent[0], width,
                      [=] __device__(Index row, Index c, Sum * to) {
                        if (!layout.is_token(row)) return;
                        auto const centred = static_cast<Sum>(x.data[row * width + c]) - of.mean[c];
                        auto const y = rounded_product(centred, of.scale[c]) + bias[c];
                        if (activation == Activation::relu && !(y > 0)) return;
                        auto const g = static_cast<Sum>(dy.data[row * width + c]);
                        to[0] += g;
                        to[1] += g * (centred * of.reciprocal[c]);
                      },
                      partial, {sums, Write::overwrite}, {sums + width, Write::overwrite});
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, chunks of rows merged
/// in order
template <>
struct BatchNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Layout = SequenceLayout<CudaSpace>;

  template <class Scalar>
  struct Statistics {
    Vector<Scalar> mean, reciprocal, scale;
  };
  template <class Scalar>
  struct Running {
    Vector<Scalar> mean, variance;
  };

  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index channels) noexcept {
    return 2 * (detail::column_chunks(rows) + 1) * channels + detail::column_chunks(rows);
  }
  [[nodiscard]] static constexpr Index moment_elements(Index channels) noexcept { return 1 + 2 * channels; }

  template <class Scalar>
  static void measure(Stream stream, Matrix<Scalar const> x, Vector<Accumulate<Scalar> const> weight, double epsilon,
                      double momentum, Running<Accumulate<Scalar>> running, Statistics<Accumulate<Scalar>> statistics,
                      Accumulate<Scalar>* partial, Layout const& layout = {}) {
    auto const name = "kernel::BatchNorm::measure";
    auto const rows = x.extent[0], width = x.extent[1];
    measure_chunks(name, stream, x, layout, partial);
    auto const to = channels_of(statistics);
    detail::for_elements(name, stream, width * detail::warp, [=] __device__(Index i) {
      auto const c = i / detail::warp;
      auto const all = detail::moments_of_column(partial, rows, width, c);
      if (detail::lane() == 0)
        detail::update_channel(to, {running.mean.data, running.variance.data}, c, all,
                               static_cast<double>(weight.data[c]), epsilon, momentum);
    });
  }

  template <class Scalar>
  static void moments(Stream stream, Matrix<Scalar const> x, Accumulate<Scalar>* partial, double* to,
                      Layout const& layout = {}) {
    auto const name = "kernel::BatchNorm::moments";
    auto const rows = x.extent[0], width = x.extent[1];
    measure_chunks(name, stream, x, layout, partial);
    detail::for_elements(name, stream, width * detail::warp, [=] __device__(Index i) {
      auto const c = i / detail::warp;
      auto const all = detail::moments_of_column(partial, rows, width, c);
      if (detail::lane() != 0) return;
      if (c == 0) to[0] = all.count;
      to[1 + c] = all.mean;
      to[1 + width + c] = all.squares;
    });
  }
  template <class Scalar>
  static void measure_merged(Stream stream, Index replicas, double const* moments, Vector<Scalar const> weight,
                             double epsilon, double momentum, Running<Scalar> running, Statistics<Scalar> statistics) {
    auto const to = channels_of(statistics);
    auto const width = weight.size();
    detail::for_elements("kernel::BatchNorm::measure_merged", stream, width, [=] __device__(Index c) {
      detail::Moments all;
      for (Index r = 0; r < replicas; ++r) {
        auto const* const of = moments + r * moment_elements(width);
        all.merge({of[0], of[1 + c], of[1 + width + c]});
      }
      detail::update_channel(to, {running.mean.data, running.variance.data}, c, all,
                             static_cast<double>(weight.data[c]), epsilon, momentum);
    });
  }

  template <class Scalar>
  static void use_running_averages(Stream stream, Running<Scalar> running, Vector<Scalar const> weight, double epsilon,
                                   Statistics<Scalar> statistics) {
    auto const to = channels_of(statistics);
    detail::for_elements("kernel::BatchNorm::use_running_averages", stream, weight.size(), [=] __device__(Index c) {
      detail::set_channel(to, c, static_cast<double>(running.mean.data[c]),
                          static_cast<double>(running.variance.data[c]), static_cast<double>(weight.data[c]), epsilon);
    });
  }

  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Statistics<Accumulate<Scalar>> statistics,
                      Vector<Accumulate<Scalar> const> bias, Activation activation, Matrix<Scalar> y,
                      Layout const& layout = {}) {
    using Sum = Accumulate<Scalar>;
    auto const of = channels_of(statistics);
    auto const name = "kernel::BatchNorm::forward";
    detail::for_vectorized<Scalar>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Scalar> const& access) {
      detail::AccessNumbers<Scalar> values;
      access.load_as(x.data, values);
      detail::MatrixStep at(layout, x.extent[1], access.first());
      for (auto& value : values) {
        auto const c = at.column();
        auto const out = detail::rounded_product(value - of.mean[c], of.scale[c]) + bias.data[c];
        value = !at.is_token() || (activation == Activation::relu && out < 0) ? Sum{0} : out;
        at.next();
      }
      access.put(values, y.data);
    });
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                       Statistics<Accumulate<Scalar>> statistics, Vector<Accumulate<Scalar> const> bias,
                       Activation activation, Matrix<Scalar> dx, Write dx_write, Vector<Accumulate<Scalar>> dweight,
                       Write dweight_write, Vector<Accumulate<Scalar>> dbias, Write dbias_write,
                       Accumulate<Scalar>* partial, Layout const& layout = {}) {
    using Sum = Accumulate<Scalar>;
    auto const rows = x.extent[0], width = x.extent[1];
    auto* const sums = partial + 2 * detail::column_chunks(rows) * width;  // of g, and of g z; later their means
    auto const name = "kernel::BatchNorm::backward";
    detail::sum_of_rows(name, stream, dy, x, channels_of(statistics), bias.data, activation, layout, partial, sums);
    detail::for_elements(name, stream, width * detail::warp, [=] __device__(Index i) {
      auto const c = i / detail::warp, tokens = detail::count_tokens(layout, rows);
      if (detail::lane() != 0) return;
      Sum const g = sums[c], gz = sums[width + c];
      auto const count = static_cast<Sum>(tokens > 0 ? tokens : 1);
      dbias.data[c] = dbias_write == Write::add ? dbias.data[c] + g : g;
      dweight.data[c] = dweight_write == Write::add ? dweight.data[c] + gz : gz;
      sums[c] = g / count;
      sums[width + c] = gz / count;
    });
    input_gradient(stream, dy, x, statistics, bias, activation, sums, dx, dx_write, layout);
  }

  template <class Scalar>
  static void sums(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                   Statistics<Accumulate<Scalar>> statistics, Vector<Accumulate<Scalar> const> bias,
                   Activation activation, Vector<Accumulate<Scalar>> dweight, Write dweight_write,
                   Vector<Accumulate<Scalar>> dbias, Write dbias_write, Accumulate<Scalar>* partial,
                   Accumulate<Scalar>* to, Layout const& layout = {}) {
    auto const width = x.extent[1];
    auto const name = "kernel::BatchNorm::sums";
    detail::sum_of_rows(name, stream, dy, x, channels_of(statistics), bias.data, activation, layout, partial, to);
    detail::for_elements(name, stream, width, [=] __device__(Index c) {
      dbias.data[c] = dbias_write == Write::add ? dbias.data[c] + to[c] : to[c];
      dweight.data[c] = dweight_write == Write::add ? dweight.data[c] + to[width + c] : to[width + c];
    });
  }
  template <class Scalar>
  static void means(Stream stream, Index replicas, Index channels, Scalar const* sums, double const* moments,
                    Scalar* to) {
    detail::for_elements("kernel::BatchNorm::means", stream, 2 * channels, [=] __device__(Index i) {
      double rows = 0, sum = 0;
      for (Index r = 0; r < replicas; ++r) {
        rows += moments[r * moment_elements(channels)];
        sum += static_cast<double>(sums[2 * channels * r + i]);
      }
      to[i] = static_cast<Scalar>(sum / (rows > 0 ? rows : 1));
    });
  }
  template <class Scalar>
  static void input_gradient(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                             Statistics<Accumulate<Scalar>> statistics, Vector<Accumulate<Scalar> const> bias,
                             Activation activation, Accumulate<Scalar> const* means, Matrix<Scalar> dx, Write dx_write,
                             Layout const& layout = {}) {
    using Sum = Accumulate<Scalar>;
    if (!dx.data) return;
    auto const width = x.extent[1];
    auto const of = channels_of(statistics);
    auto const name = "kernel::BatchNorm::input_gradient";
    detail::for_vectorized<Scalar>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Scalar> const& access) {
      detail::AccessNumbers<Scalar> inputs, gradients;
      access.load_as(x.data, inputs);
      access.load_as(dy.data, gradients);
      detail::MatrixStep at(layout, width, access.first());
      for (int j = 0; j < access.size; ++j) {
        auto const c = at.column();
        auto const centred = inputs[j] - of.mean[c];
        auto const y = detail::rounded_product(centred, of.scale[c]) + bias.data[c];
        auto const g = activation == Activation::relu && !(y > 0) ? Sum{0} : gradients[j];
        gradients[j] =
            at.is_token() ? of.scale[c] * (g - means[c] - centred * (means[width + c] * of.reciprocal[c])) : Sum{0};
        at.next();
      }
      access.put(gradients, dx.data, dx_write);
    });
  }

 private:
  template <class Scalar>
  static void measure_chunks(char const* name, Stream stream, Matrix<Scalar const> x, Layout const& layout,
                             Accumulate<Scalar>* partial) {
    auto const tiles = (x.extent[1] + detail::warp - 1) / detail::warp;
    detail::launch_grid(name, stream, static_cast<unsigned>(tiles * detail::column_chunks(x.extent[0])),
                        detail::threads_per_block, detail::moments_of_chunks<Scalar>, x.extent[0], x.extent[1], x.data,
                        layout, partial);
  }
  template <class Scalar>
  [[nodiscard]] static detail::ChannelStatistics<Scalar> channels_of(Statistics<Scalar> const& s) noexcept {
    return {s.mean.data, s.reciprocal.data, s.scale.data};
  }
};

}}}  // namespace lockstep::kernel
