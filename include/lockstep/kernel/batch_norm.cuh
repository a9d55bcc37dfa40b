// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/batch_norm.hpp>
#include <lockstep/kernel/detail/neighbours.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {

/// What BatchNorm's kernels know of each channel.
template <class Sum>
struct ChannelStatistics {
  Sum *mean, *reciprocal, *scale;
};

inline namespace LOCKSTEP_CUDA_ABI {

/// A block takes 32 columns of a chunk of rows: their mean, and the squares of the differences from it.
template <class T>
LOCKSTEP_CUDA_KERNEL void moments_of_chunks(Index rows, Index width, T const* x, Accumulate<T>* partial) {
  using Sum = Accumulate<T>;
  auto const tiles = (width + warp - 1) / warp;
  auto const chunk = Index{blockIdx.x} / tiles, column = Index{blockIdx.x} % tiles * warp + lane();
  auto const begin = chunk * column_chunk(rows), end = min(rows, begin + column_chunk(rows));
  auto const first = begin + Index{threadIdx.x} / warp;
  Sum sum = 0, squares = 0;
  for (auto row = first; column < width && row < end; row += warps_per_block)
    sum += static_cast<Sum>(x[row * width + column]);
  Sum const mean = sum_of_column(sum) / static_cast<Sum>(end - begin);
  for (auto row = first; column < width && row < end; row += warps_per_block) {
    Sum const difference = static_cast<Sum>(x[row * width + column]) - mean;
    squares += difference * difference;
  }
  squares = sum_of_column(squares);
  if (threadIdx.x >= warp || column >= width) return;
  partial[2 * chunk * width + column] = mean;
  partial[(2 * chunk + 1) * width + column] = squares;
}

/// How many elements were seen, their mean, and the sum of their squared differences from it.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  __device__ void merge(Moments const& other) noexcept {
    if (other.count == 0) return;
    auto const off = other.mean - mean, all = count + other.count;
    mean += off * other.count / all;
    squares += other.squares + off * off * count * other.count / all;
    count = all;
  }
};

/// The chunks' moments as one, by a warp: each lane merges every 32nd in order, then lanes meet in a fixed tree.
template <class Sum>
[[nodiscard]] __device__ Moments moments_of_column(Sum const* partial, Index rows, Index width, Index column) noexcept {
  Moments moments;
  auto const chunk_rows = column_chunk(rows);
  for (auto begin = lane() * chunk_rows; begin < rows; begin += Index{warp} * chunk_rows) {
    auto const* const of_chunk = partial + 2 * (begin / chunk_rows) * width + column;
    moments.merge({static_cast<double>(min(chunk_rows, rows - begin)), static_cast<double>(of_chunk[0]),
                   static_cast<double>(of_chunk[width])});
  }
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
    Moments const other{__shfl_xor_sync(~0u, moments.count, distance), __shfl_xor_sync(~0u, moments.mean, distance),
                        __shfl_xor_sync(~0u, moments.squares, distance)};
    moments.merge(other);
  }
  return moments;  // lanes may differ in the last bit
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
/// @determinism bitwise, run to run and, of one build, on GPUs of one architecture: no atomics, chunks of rows merged
/// in order
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
    return 2 * (detail::column_chunks(rows) + 1) * channels;
  }

  template <class T>
  static void measure(Stream stream, Matrix<T const> x, Vector<Accumulate<T> const> weight, double epsilon,
                      double momentum, Running<Accumulate<T>> running, Statistics<Accumulate<T>> statistics,
                      Accumulate<T>* partial) {
    auto const name = "kernel::BatchNorm::measure";
    auto const rows = x.extent[0], width = x.extent[1];
    auto const tiles = (width + detail::warp - 1) / detail::warp;
    detail::launch_grid(name, stream, static_cast<unsigned>(tiles * detail::column_chunks(rows)),
                        detail::threads_per_block, detail::moments_of_chunks<T>, rows, width, x.data, partial);
    auto const to = channels_of(statistics);
    detail::for_elements(name, stream, width * detail::warp, [=] __device__(Index i) {
      auto const c = i / detail::warp;
      auto const moments = detail::moments_of_column(partial, rows, width, c);
      if (detail::lane() != 0) return;
      detail::set_channel(to, c, moments.mean, rows > 0 ? moments.squares / static_cast<double>(rows) : 0,
                          static_cast<double>(weight.data[c]), epsilon);
      if (rows < 2) return;
      auto const moved = [=](Accumulate<T> average, double target) {
        return static_cast<Accumulate<T>>((1 - momentum) * static_cast<double>(average) + momentum * target);
      };
      running.mean.data[c] = moved(running.mean.data[c], moments.mean);
      running.variance.data[c] = moved(running.variance.data[c], moments.squares / static_cast<double>(rows - 1));
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
    auto const name = "kernel::BatchNorm::forward";
    detail::for_neighbours<T>(name, stream, x.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> values;
      here.load_as(x.data, values);
      auto c = here.first() % x.extent[1];
      for (auto& value : values) {
        auto const out = detail::product(value - of.mean[c], of.scale[c]) + bias.data[c];
        value = activation == Activation::relu && out < 0 ? Sum{0} : out;
        c = c + 1 < x.extent[1] ? c + 1 : 0;
      }
      here.put(values, y.data);
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
    auto* const sums = partial + 2 * detail::column_chunks(rows) * width;  // of g, and of g z; then their means
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
    detail::for_neighbours<T>(name, stream, x.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> inputs, gradients;
      here.load_as(x.data, inputs);
      here.load_as(dy.data, gradients);
      auto c = here.first() % width;
      for (int j = 0; j < here.size; ++j) {
        auto const centred = inputs[j] - of.mean[c];
        auto const y = detail::product(centred, of.scale[c]) + bias.data[c];
        auto const g = activation == Activation::relu && !(y > 0) ? Sum{0} : gradients[j];
        gradients[j] = of.scale[c] * (g - sums[c] - centred * (sums[width + c] * of.reciprocal[c]));
        c = c + 1 < width ? c + 1 : 0;
      }
      here.put(gradients, dx.data, dx_write);
    });
  }

 private:
  template <class T>
  [[nodiscard]] static detail::ChannelStatistics<T> channels_of(Statistics<T> const& s) noexcept {
    return {s.mean.data, s.reciprocal.data, s.scale.data};
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
