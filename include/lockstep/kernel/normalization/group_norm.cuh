// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/normalization/group_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Computes the statistics of one group of a sample per block.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void group_moments(GroupNormShape s, Scalar const* x, double epsilon, Accumulate<Scalar>* mean,
                                        Accumulate<Scalar>* reciprocal) {
  using Sum = Accumulate<Scalar>;
  auto const each = s.group_channels(), size = s.group_size();
  for (auto group = BlockTeam::first(); group < s.rows * s.groups; group += BlockTeam::count()) {
    auto const row = group / s.groups, first = group % s.groups * each;
    auto const begin = row * s.positions * s.channels + first;
    Sum sum = 0, rest = 0, squares = 0;
    for (auto i = BlockTeam::member(); i < size; i += BlockTeam::size)
      sum += static_cast<Sum>(x[begin + i / each * s.channels + i % each]);
    auto const count = static_cast<Sum>(size > 0 ? size : 1), center = BlockTeam::sum(sum) / count;
    for (auto i = BlockTeam::member(); i < size; i += BlockTeam::size) {
      auto const off = static_cast<Sum>(x[begin + i / each * s.channels + i % each]) - center;
      rest += off;  // the rounding error of the first sum
      squares += off * off;
    }
    rest = BlockTeam::sum(rest);
    squares = BlockTeam::sum(squares);
    auto const variance = static_cast<double>(squares - rest * rest / count) / static_cast<double>(count);
    auto const by = static_cast<Sum>(1 / std::sqrt(variance + epsilon));
    for (auto c = BlockTeam::member(); c < each; c += BlockTeam::size) {
      mean[row * s.channels + first + c] = center + rest / count;
      reciprocal[row * s.channels + first + c] = by;
    }
  }
}

/// Computes sums for 32 channels of a sample per block. Each thread sums every eighth position of a channel, then their
/// sums are added in order.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void group_gradient_sums(GroupNormShape s, Scalar const* dy, Scalar const* x,
                                              Accumulate<Scalar> const* mean, Accumulate<Scalar> const* reciprocal,
                                              Accumulate<Scalar> const* weight, Accumulate<Scalar> const* bias,
                                              Activation activation, Accumulate<Scalar>* sums) {
  using Sum = Accumulate<Scalar>;
  __shared__ Sum shared[2][warps_per_block][warp];
  auto const tiles = (s.channels + warp - 1) / warp;
  for (auto i = Index{blockIdx.x}; i < s.rows * tiles; i += gridDim.x) {
    auto const row = i / tiles, c = i % tiles * warp + lane(), of = row * s.channels + c;
    Sum g_sum = 0, gz_sum = 0;
    for (auto p = Index{threadIdx.x} / warp; c < s.channels && p < s.positions; p += warps_per_block) {
      auto const at = (row * s.positions + p) * s.channels + c;
      auto const centred = static_cast<Sum>(x[at]) - mean[of];
      auto const y = rounded_product(centred, rounded_product(reciprocal[of], weight[c])) + bias[c];
      if (activation == Activation::relu && !(y > 0)) continue;
      auto const g = static_cast<Sum>(dy[at]);
      g_sum += g;
      gz_sum += g * (centred * reciprocal[of]);
    }
    __syncthreads();  // wait until the last tile's sums were read
    shared[0][threadIdx.x / warp][lane()] = g_sum;
    shared[1][threadIdx.x / warp][lane()] = gz_sum;
    __syncthreads();
    if (threadIdx.x >= 2 * warp || c >= s.channels) continue;
    auto const which = Index{threadIdx.x} / warp;
    Sum sum = 0;
    for (Index part = 0; part < warps_per_block; ++part) sum += shared[which][part][lane()];
    sums[(2 * row + which) * s.channels + c] = sum;
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct GroupNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Shape = GroupNormShape;

  template <class Scalar>
  struct Statistics {
    Scalar *mean, *reciprocal;  // [rows, channels]
  };

  [[nodiscard]] static constexpr Index partial_elements(Shape const& s) noexcept { return 4 * s.rows * s.channels; }

  template <class Scalar>
  static void measure(Stream stream, Shape const& s, Scalar const* x, double epsilon,
                      Statistics<Accumulate<Scalar>> statistics, Accumulate<Scalar>*) {
    detail::launch("kernel::GroupNorm::measure", stream, s.rows * s.groups * detail::BlockTeam::size,
                   detail::group_moments<Scalar>, s, x, epsilon, statistics.mean, statistics.reciprocal);
  }

  template <class Scalar>
  static void forward(Stream stream, Shape const& s, Scalar const* x, Statistics<Accumulate<Scalar>> statistics,
                      Accumulate<Scalar> const* weight, Accumulate<Scalar> const* bias, Activation activation,
                      Scalar* y) {
    using Sum = Accumulate<Scalar>;
    detail::for_elements("kernel::GroupNorm::forward", stream, s.size(), [=] __device__(Index i) {
      auto const c = i % s.channels, of = i / (s.positions * s.channels) * s.channels + c;
      auto const factor = detail::rounded_product(statistics.reciprocal[of], weight[c]);
      auto const out = detail::rounded_product(static_cast<Sum>(x[i]) - statistics.mean[of], factor) + bias[c];
      y[i] = static_cast<Scalar>(activation == Activation::relu && out < 0 ? Sum{0} : out);
    });
  }

  template <class Scalar>
  static void backward(Stream stream, Shape const& s, Scalar const* dy, Scalar const* x,
                       Statistics<Accumulate<Scalar>> statistics, Accumulate<Scalar> const* weight,
                       Accumulate<Scalar> const* bias, Activation activation, Scalar* dx, Write dx_write,
                       Accumulate<Scalar>* dweight, Write dweight_write, Accumulate<Scalar>* dbias, Write dbias_write,
                       Accumulate<Scalar>* partial) {
    using Sum = Accumulate<Scalar>;
    auto const name = "kernel::GroupNorm::backward";
    auto* const sums = partial;                             // of g, and of g z, [rows, 2, channels]
    auto* const means = partial + 2 * s.rows * s.channels;  // their weighted means over groups, [rows, 2, channels]
    auto const tiles = (s.channels + detail::warp - 1) / detail::warp;
    detail::launch(name, stream, s.rows * tiles * detail::threads_per_block, detail::group_gradient_sums<Scalar>, s, dy,
                   x, statistics.mean, statistics.reciprocal, weight, bias, activation, sums);
    detail::for_elements(name, stream, s.channels, [=] __device__(Index c) {
      Sum g = 0, gz = 0;
      for (Index row = 0; row < s.rows; ++row) {
        g += sums[2 * row * s.channels + c];
        gz += sums[(2 * row + 1) * s.channels + c];
      }
      dbias[c] = dbias_write == Write::add ? dbias[c] + g : g;
      dweight[c] = dweight_write == Write::add ? dweight[c] + gz : gz;
    });
    if (!dx || s.positions == 0) return;
    detail::for_elements(name, stream, 2 * s.rows * s.groups, [=] __device__(Index i) {
      auto const each = s.group_channels(), first = i % s.groups * each, at = i / s.groups * s.channels + first;
      Sum sum = 0;
      for (Index c = 0; c < each; ++c) sum += sums[at + c] * weight[first + c];
      for (Index c = 0; c < each; ++c) means[at + c] = sum / static_cast<Sum>(s.group_size());
    });
    detail::for_elements(name, stream, s.size(), [=] __device__(Index i) {
      auto const c = i % s.channels, row = i / (s.positions * s.channels), of = row * s.channels + c;
      auto const by = statistics.reciprocal[of], centred = static_cast<Sum>(x[i]) - statistics.mean[of];
      auto const y = detail::rounded_product(centred, detail::rounded_product(by, weight[c])) + bias[c];
      auto const g = activation == Activation::relu && !(y > 0) ? Sum{0} : static_cast<Sum>(dy[i]);
      auto const mean_g = means[2 * row * s.channels + c], mean_gz = means[(2 * row + 1) * s.channels + c];
      auto const d = by * (weight[c] * g - mean_g - centred * (mean_gz * by));
      dx[i] = static_cast<Scalar>(dx_write == Write::add ? static_cast<Sum>(dx[i]) + d : d);
    });
  }
};

}}}  // namespace lockstep::kernel
