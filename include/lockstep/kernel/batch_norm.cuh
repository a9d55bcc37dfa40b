// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/batch_norm.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {

/// What BatchNorm's kernels know of each channel.
template <class Sum>
struct ChannelStatistics {
  Sum *mean, *reciprocal, *scale;
};

inline namespace LOCKSTEP_CUDA_ABI {

/// The sum over a block's warps, in order, of the lanes of a column; every thread of the column gets it.
template <class Sum>
__device__ Sum sum_of_column(Sum value) {
  __shared__ Sum shared[warps_per_block][warp];
  __syncthreads();  // the last call's values have been read
  shared[threadIdx.x / warp][threadIdx.x % warp] = value;
  __syncthreads();
  Sum sum = 0;
  for (Index part = 0; part < warps_per_block; ++part) sum += shared[part][threadIdx.x % warp];
  return sum;
}

/// A block takes 32 columns of a chunk of rows: their mean, and the squares of the differences from it.
template <class T>
LOCKSTEP_CUDA_KERNEL void moments_of_chunks(Index rows, Index width, T const* x, Accumulate<T>* partial) {
  using Sum = Accumulate<T>;
  auto const tiles = (width + warp - 1) / warp;
  auto const chunk = Index{blockIdx.x} / tiles, column = Index{blockIdx.x} % tiles * warp + lane();
  auto const first = chunk * column_chunk + Index{threadIdx.x} / warp, end = min(rows, (chunk + 1) * column_chunk);
  Sum sum = 0, squares = 0;
  for (auto row = first; column < width && row < end; row += warps_per_block)
    sum += static_cast<Sum>(x[row * width + column]);
  Sum const mean = sum_of_column(sum) / static_cast<Sum>(end - chunk * column_chunk);
  for (auto row = first; column < width && row < end; row += warps_per_block) {
    Sum const difference = static_cast<Sum>(x[row * width + column]) - mean;
    squares += difference * difference;
  }
  squares = sum_of_column(squares);
  if (threadIdx.x >= warp || column >= width) return;
  partial[2 * chunk * width + column] = mean;
  partial[(2 * chunk + 1) * width + column] = squares;
}

template <class Sum>
__device__ void set_channel(ChannelStatistics<Sum> to, Index c, double mean, double variance, double weight,
                            double epsilon) {
  double const reciprocal = 1 / std::sqrt(variance + epsilon);
  to.mean[c] = static_cast<Sum>(mean);
  to.reciprocal[c] = static_cast<Sum>(reciprocal);
  to.scale[c] = static_cast<Sum>(reciprocal * weight);
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Functions and shapes as on the host, queued on the stream.
/// @determinism bitwise, run to run and on every GPU: no atomics, chunks of rows merged in order
template <>
struct BatchNorm<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, CudaSpace>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;

  template <class T>
  struct Statistics {
    Vector<T> mean, reciprocal, scale;
  };
  template <class T>
  struct Running {
    Vector<T> mean, variance;
  };

  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index channels) noexcept {
    return 2 * (std::max<Index>(1, chunks(rows)) + 1) * channels;
  }

  template <class T>
  static void measure(Stream stream, Matrix<T const> x, Vector<Accumulate<T> const> weight, double epsilon,
                      double momentum, Running<Accumulate<T>> running, Statistics<Accumulate<T>> statistics,
                      Accumulate<T>* partial) {
    auto const name = "kernel::BatchNorm::measure";
    auto const rows = x.extent[0], width = x.extent[1];
    auto const tiles = (width + detail::warp - 1) / detail::warp;
    detail::launch_grid(name, stream, static_cast<unsigned>(tiles * chunks(rows)), detail::threads_per_block,
                        detail::moments_of_chunks<T>, rows, width, x.data, partial);
    auto const to = channels_of(statistics);
    detail::for_elements(name, stream, width, [=] __device__(Index c) {
      double center = 0, squares = 0;
      for (Index begin = 0; begin < rows; begin += detail::column_chunk) {
        auto const* const sums = partial + 2 * (begin / detail::column_chunk) * width + c;
        auto const here = static_cast<double>(min(detail::column_chunk, rows - begin));
        auto const before = static_cast<double>(begin), off = static_cast<double>(sums[0]) - center;
        center += off * here / (before + here);
        squares += static_cast<double>(sums[width]) + off * off * before * here / (before + here);
      }
      detail::set_channel(to, c, center, rows > 0 ? squares / static_cast<double>(rows) : 0,
                          static_cast<double>(weight.data[c]), epsilon);
      if (rows < 2) return;
      auto const moved = [=](Accumulate<T> average, double target) {
        return static_cast<Accumulate<T>>((1 - momentum) * static_cast<double>(average) + momentum * target);
      };
      running.mean.data[c] = moved(running.mean.data[c], center);
      running.variance.data[c] = moved(running.variance.data[c], squares / static_cast<double>(rows - 1));
    });
  }

  template <class T>
  static void recall(Stream stream, Running<T> running, Vector<T const> weight, double epsilon,
                     Statistics<T> statistics) {
    auto const to = channels_of(statistics);
    detail::for_elements("kernel::BatchNorm::recall", stream, weight.size(), [=] __device__(Index c) {
      detail::set_channel(to, c, static_cast<double>(running.mean.data[c]),
                          static_cast<double>(running.variance.data[c]), static_cast<double>(weight.data[c]), epsilon);
    });
  }

  template <class T>
  static void forward(Stream stream, Matrix<T const> x, Statistics<Accumulate<T>> statistics,
                      Vector<Accumulate<T> const> bias, Activation activation, Matrix<T> y) {
    using Sum = Accumulate<T>;
    auto const of = channels_of(statistics);
    detail::for_elements("kernel::BatchNorm::forward", stream, x.size(), [=] __device__(Index i) {
      auto const c = i % x.extent[1];
      auto const centred = static_cast<Sum>(x.data[i]) - of.mean[c];
      auto const out = detail::product(centred, of.scale[c]) + bias.data[c];
      y.data[i] = static_cast<T>(activation == Activation::relu && out < 0 ? Sum{0} : out);
    });
  }

  template <class T>
  static void backward(Stream stream, Matrix<T const> dy, Matrix<T const> x, Statistics<Accumulate<T>> statistics,
                       Vector<Accumulate<T> const> bias, Activation activation, Matrix<T> dx, Write dx_write,
                       Vector<Accumulate<T>> dweight, Write dweight_write, Vector<Accumulate<T>> dbias,
                       Write dbias_write, Accumulate<T>* partial) {
    using Sum = Accumulate<T>;
    auto const name = "kernel::BatchNorm::backward";
    auto const rows = x.extent[0], width = x.extent[1];
    auto const of = channels_of(statistics);
    auto* const sums = partial + 2 * std::max<Index>(1, chunks(rows)) * width;  // of g, and of g z; then their means
    detail::sum_columns<Sum, 2>(name, stream, rows, width,
                                [=] __device__(Index row, Index c, Sum * to) {
                                  auto const centred = static_cast<Sum>(x.data[row * width + c]) - of.mean[c];
                                  auto const y = detail::product(centred, of.scale[c]) + bias.data[c];
                                  if (activation == Activation::relu && !(y > 0)) return;
                                  auto const g = static_cast<Sum>(dy.data[row * width + c]);
                                  to[0] += g;
                                  to[1] += g * (centred * of.reciprocal[c]);
                                },
                                partial, {sums, Write::overwrite}, {sums + width, Write::overwrite});
    detail::for_elements(name, stream, width, [=] __device__(Index c) {
      Sum const g = sums[c], gz = sums[width + c];
      auto const count = static_cast<Sum>(rows > 0 ? rows : 1);
      dbias.data[c] = dbias_write == Write::add ? dbias.data[c] + g : g;
      dweight.data[c] = dweight_write == Write::add ? dweight.data[c] + gz : gz;
      sums[c] = g / count;
      sums[width + c] = gz / count;
    });
    if (!dx.data) return;
    detail::for_elements(name, stream, x.size(), [=] __device__(Index i) {
      auto const c = i % width;
      auto const scale = of.scale[c];
      auto const centred = static_cast<Sum>(x.data[i]) - of.mean[c];
      auto const y = detail::product(centred, scale) + bias.data[c];
      auto const g = activation == Activation::relu && !(y > 0) ? Sum{0} : static_cast<Sum>(dy.data[i]);
      auto const slope = sums[width + c] * of.reciprocal[c];
      Sum const here = scale * (g - sums[c] - centred * slope);
      dx.data[i] = static_cast<T>(dx_write == Write::add ? static_cast<Sum>(dx.data[i]) + here : here);
    });
  }

 private:
  [[nodiscard]] static constexpr Index chunks(Index rows) noexcept {
    return (rows + detail::column_chunk - 1) / detail::column_chunk;
  }
  template <class T>
  [[nodiscard]] static detail::ChannelStatistics<T> channels_of(Statistics<T> const& s) noexcept {
    return {s.mean.data, s.reciprocal.data, s.scale.data};
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
