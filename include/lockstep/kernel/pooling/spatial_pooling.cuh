// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/spatial_range.cuh>
#include <lockstep/kernel/pooling/detail/check_pooling.hpp>
#include <lockstep/kernel/pooling/spatial_pooling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Computes dx = the sum over the windows that contain a position, in order, or adds it to dx. The terms are
/// term(element of y, position of x).
template <class Scalar, class Term>
void gather_from_windows(memory::Stream<CudaSpace> stream, ConvolutionShape const& s,
                         TensorView<Scalar, 1, CudaSpace> dx, Write write, Term const& term) {
  auto const positions = s.output_positions(), channels = s.inputs, inputs = s.input_positions();
  for_elements("kernel::SpatialPooling::backward", stream, dx.size(), [=] __device__(Index i) {
    auto const row = i / channels / inputs, position = i / channels % inputs;
    using Sum = Accumulate<Scalar>;
    Sum sum = write == Write::add ? static_cast<Sum>(dx.data[i]) : Sum{0};
    output_range(s, position).for_positions(s.result(), [&](Index output) {
      sum += term((row * positions + output) * channels + i % channels, position);
    });
    dx.data[i] = static_cast<Scalar>(sum);
  });
}

}  // namespace detail

/// CUDA version with the host's functions, shapes and bits, queued on the stream. One thread processes one channel of a
/// position. In the backward pass, it sums over the windows that contain its position of x, so each element has one
/// writer.
template <>
struct SpatialPooling<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void max(Stream stream, ConvolutionShape const& s, Vector<Scalar const> x, Vector<Scalar> y,
                  Vector<std::int32_t> argmax) {
    detail::check_pooling(s, x.size(), y.size());
    auto const positions = s.output_positions(), channels = s.inputs, size = s.input_size();
    detail::for_elements("kernel::SpatialPooling::max", stream, y.size(), [=] __device__(Index i) {
      auto const* const sample = x.data + i / channels / positions * size + i % channels;
      auto const window = detail::input_range(s, i / channels % positions);
      Accumulate<Scalar> best = -std::numeric_limits<Accumulate<Scalar>>::infinity();
      auto at = (window.begin[0] * s.extent[1] + window.begin[1]) * s.extent[2] + window.begin[2];
      window.for_positions(s.extent, [&](Index from) {
        Accumulate<Scalar> const here = sample[from * channels];
        if (!(here > best || here != here)) return;
        best = here;
        at = from;
      });
      y.data[i] = static_cast<Scalar>(best);
      if (argmax.data) argmax.data[i] = static_cast<std::int32_t>(at);
    });
  }

  template <class Scalar>
  static void max_backward(Stream stream, ConvolutionShape const& s, Vector<Scalar const> dy,
                           Vector<std::int32_t const> argmax, Vector<Scalar> dx, Write write) {
    detail::check_pooling(s, dx.size(), dy.size());
    detail::gather_from_windows<Scalar>(stream, s, dx, write, [=] __device__(Index output, Index position) {
      return static_cast<Index>(argmax.data[output]) == position ? dy.data[output] : Scalar{0};
    });
  }

  template <class Scalar>
  static void average(Stream stream, ConvolutionShape const& s, Vector<Scalar const> x, Vector<Scalar> y) {
    detail::check_pooling(s, x.size(), y.size());
    constexpr Index few = 1024;  // a long sum of floats would lose small terms
    s.taps() <= few ? average_by<Accumulate<Scalar>>(stream, s, x, y) : average_by<double>(stream, s, x, y);
  }

  template <class Scalar>
  static void average_backward(Stream stream, ConvolutionShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx,
                               Write write) {
    auto const taps = static_cast<Accumulate<Scalar>>(s.taps());
    detail::check_pooling(s, dx.size(), dy.size());
    detail::gather_from_windows<Scalar>(stream, s, dx, write,
                                        [=] __device__(Index output, Index) { return dy.data[output] / taps; });
  }

  /// Implementation of `average`; public because nvcc requires it.
  template <class Sum, class Scalar>
  static void average_by(Stream stream, ConvolutionShape const& s, Vector<Scalar const> x, Vector<Scalar> y) {
    auto const positions = s.output_positions(), channels = s.inputs, size = s.input_size();
    auto const taps = static_cast<Sum>(s.taps());
    detail::for_elements("kernel::SpatialPooling::average", stream, y.size(), [=] __device__(Index i) {
      auto const* const sample = x.data + i / channels / positions * size + i % channels;
      Sum sum = 0;
      detail::input_range(s, i / channels % positions).for_positions(s.extent, [&](Index from) {
        sum += static_cast<Sum>(sample[from * channels]);
      });
      y.data[i] = static_cast<Scalar>(static_cast<Accumulate<Scalar>>(sum / taps));
    });
  }
};

}}}  // namespace lockstep::kernel
