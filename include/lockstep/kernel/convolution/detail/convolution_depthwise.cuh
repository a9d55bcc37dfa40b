// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/spatial_range.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Number of adjacent positions of a line of y that share one row of a sum over columns, and thus their index
/// divisions.
inline constexpr Index depthwise_piece = 64;

inline namespace LOCKSTEP_CUDA_ABI {

/// Term of a weight's gradient: the contribution of a piece of a line of y to one tap of a channel. Columns are [taps,
/// channels].
template <class Scalar>
struct DepthwiseTerm {
  ConvolutionShape s;
  Extents<3> result;
  Index pieces;  // of a line
  Scalar const *x, *dy;

  __device__ void operator()(Index row, Index column, Accumulate<Scalar> (&sums)[1]) const {
    auto const channels = s.inputs, channel = column % channels;
    auto const tap = position_at(s.kernel, column / channels);
    auto const line = row / pieces, first = row % pieces * depthwise_piece;
    auto const h = line % result[1], d = line / result[1] % result[0], sample = line / result[1] / result[0];
    auto const from_d = d * s.stride[0] + tap[0] * s.dilation[0] - s.padding[0];
    auto const from_h = h * s.stride[1] + tap[1] * s.dilation[1] - s.padding[1];
    if (from_d < 0 || from_d >= s.extent[0] || from_h < 0 || from_h >= s.extent[1]) return;
    auto const stride = s.stride[2], start = tap[2] * s.dilation[2] - s.padding[2];  // of the line's first position
    auto const begin = max(first, start < 0 ? (stride - 1 - start) / stride : Index{0});
    auto const end = min(min(result[2], first + depthwise_piece), (s.extent[2] - start + stride - 1) / stride);
    auto const* const from =
        x + (((sample * s.extent[0] + from_d) * s.extent[1] + from_h) * s.extent[2] + start) * channels + channel;
    auto const* const slopes = dy + line * result[2] * channels + channel;
    for (auto w = begin; w < end; ++w)
      sums[0] += static_cast<Accumulate<Scalar>>(slopes[w * channels]) *
                 static_cast<Accumulate<Scalar>>(from[w * stride * channels]);
  }
};

}  // namespace LOCKSTEP_CUDA_ABI

/// Computes y = bias + the depthwise convolution of x. One thread computes one element of y. A null bias is zero.
template <class Scalar>
void depthwise_forward(memory::Stream<CudaSpace> stream, ConvolutionShape const& s, Scalar const* x,
                       Scalar const* weight, Scalar const* bias, Scalar* y) {
  auto const result = s.result();
  auto const positions = elements(result), channels = s.inputs, taps = s.taps();
  for_elements("kernel::Convolution::forward", stream, s.rows * s.output_size(), [=] __device__(Index at) {
    auto const channel = at % channels, position = at / channels % positions, row = at / channels / positions;
    auto const to = position_at(result, position);
    auto const d0 = to[0] * s.stride[0] - s.padding[0], h0 = to[1] * s.stride[1] - s.padding[1],
               w0 = to[2] * s.stride[2] - s.padding[2];
    auto const* const sample = x + row * s.input_size() + channel;
    auto const* factor = weight + channel * taps;
    auto sum = bias ? static_cast<Accumulate<Scalar>>(bias[channel]) : Accumulate<Scalar>{0};
    for (Index i = 0, d = d0; i < s.kernel[0]; ++i, d += s.dilation[0])
      for (Index j = 0, h = h0; j < s.kernel[1]; ++j, h += s.dilation[1]) {
        bool const inside = d >= 0 && d < s.extent[0] && h >= 0 && h < s.extent[1];
        auto const* const line = sample + (d * s.extent[1] + h) * s.extent[2] * channels;
        for (Index k = 0, w = w0; k < s.kernel[2]; ++k, w += s.dilation[2], ++factor)
          if (inside && w >= 0 && w < s.extent[2])
            sum += static_cast<Accumulate<Scalar>>(line[w * channels]) * static_cast<Accumulate<Scalar>>(*factor);
      }
    y[at] = static_cast<Scalar>(sum);
  });
}

/// Computes dx = the gradient of x, or adds it to dx. One thread computes one element of x, summed in the order of y's
/// positions.
template <class Scalar>
void depthwise_data(memory::Stream<CudaSpace> stream, ConvolutionShape const& s, Scalar const* dy, Scalar const* weight,
                    Scalar* dx, Write write) {
  auto const result = s.result();
  auto const inputs = s.input_positions(), channels = s.inputs, taps = s.taps();
  for_elements("kernel::Convolution::backward_data", stream, s.rows * s.input_size(), [=] __device__(Index at) {
    using Sum = Accumulate<Scalar>;
    auto const channel = at % channels, position = at / channels % inputs, row = at / channels / inputs;
    auto const* const factors = weight + channel * taps;
    Sum sum = write == Write::add ? static_cast<Sum>(dx[at]) : Sum{0};
    for_outputs_reading(s, position, [&](Index output, Index tap) {
      auto const slope = dy[(row * elements(result) + output) * channels + channel];
      sum += static_cast<Sum>(slope) * static_cast<Sum>(factors[tap]);
    });
    dx[at] = static_cast<Scalar>(sum);
  });
}

/// Returns the rows of the weight gradient's sum (first function). The second returns the elements that it needs for
/// partial sums and for its own element order.
[[nodiscard]] inline Index depthwise_rows(ConvolutionShape const& s) noexcept {
  auto const result = s.result();
  return s.rows * result[0] * result[1] * ((result[2] + depthwise_piece - 1) / depthwise_piece);
}
[[nodiscard]] inline Index depthwise_partials(ConvolutionShape const& s) noexcept {
  return s.weight_size() + column_partials(depthwise_rows(s), s.weight_size());
}

/// Computes dweight = the gradient of the weight, or adds it to dweight.
/// @shape partial [depthwise_partials(s)], overwritten
/// @determinism bitwise: only the shape determines the pieces of lines, which are summed in order
template <class Scalar>
void depthwise_weight(memory::Stream<CudaSpace> stream, ConvolutionShape const& s, Scalar const* dy, Scalar const* x,
                      Accumulate<Scalar>* dweight, Write write, Accumulate<Scalar>* partial) {
  auto const result = s.result();
  auto const channels = s.inputs, taps = s.taps(), size = s.weight_size();
  char const* const name = "kernel::Convolution::backward_weight";
  auto* const sums = partial;  // [taps, channels]: adjacent threads read adjacent channels
  DepthwiseTerm<Scalar> const term{s, result, (result[2] + depthwise_piece - 1) / depthwise_piece, x, dy};
  sum_columns<Accumulate<Scalar>, 1>(name, stream, depthwise_rows(s), size, term, partial + size,
                                     {sums, Write::overwrite});
  for_elements(name, stream, size, [=] __device__(Index at) {
    auto const value = sums[at % taps * channels + at / taps];
    dweight[at] = write == Write::add ? dweight[at] + value : value;
  });
}

}}}  // namespace lockstep::kernel::detail
