// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/channel_bias.cuh>
#include <lockstep/kernel/convolution.hpp>
#include <lockstep/kernel/detail/check_convolution.hpp>
#include <lockstep/kernel/detail/space_range.cuh>
#include <lockstep/kernel/gemm.cuh>
#if defined(LOCKSTEP_CUDNN)
#include <lockstep/kernel/detail/convolution_cudnn.cuh>
#endif

namespace lockstep::inline LOCKSTEP_ABI::kernel {
namespace detail {

/// No library's plans: Gemm keeps with the stream what it decides.
struct UnplannedConvolution {
  template <class... Arguments>
  static constexpr bool forward(Arguments const&...) noexcept {
    return false;
  }
  template <class... Arguments>
  static constexpr bool backward_data(Arguments const&...) noexcept {
    return false;
  }
  template <class... Arguments>
  static constexpr bool backward_weight(Arguments const&...) noexcept {
    return false;
  }
};

inline namespace LOCKSTEP_CUDA_ABI {

/// patches[place, i, k] = what tap k sees of input i there, zero in the padding. A thread takes all taps of an input,
/// because divisions cost more than what they find.
template <class T>
LOCKSTEP_CUDA_KERNEL void make_patches(ConvolutionShape s, Index rows, T const* x, T* patches) {
  auto const taps = s.taps();
  auto const result = s.result();
  auto const places = elements(result);
  for (auto at = grid_thread(); at < rows * places * s.inputs; at += grid_threads()) {
    auto const input = at % s.inputs, place = at / s.inputs % places, row = at / s.inputs / places;
    auto const to = place_at(result, place);
    auto const d0 = to[0] * s.stride[0] - s.padding[0], h0 = to[1] * s.stride[1] - s.padding[1],
               w0 = to[2] * s.stride[2] - s.padding[2];
    auto const* const sample = x + row * s.input_size() + input;
    auto* patch = patches + at * taps;
    for (auto d = d0; d < d0 + s.kernel[0]; ++d)
      for (auto h = h0; h < h0 + s.kernel[1]; ++h) {
        bool const inside = d >= 0 && d < s.extent[0] && h >= 0 && h < s.extent[1];
        auto const* const line = sample + (d * s.extent[1] + h) * s.extent[2] * s.inputs;
        for (auto w = w0; w < w0 + s.kernel[2]; ++w, ++patch)
          *patch = inside && w >= 0 && w < s.extent[2] ? line[w * s.inputs] : T{0};
      }
  }
}

/// dx = the sum over the patches that saw an element, in order of their places, or dx += that: a thread takes an
/// element of x.
template <class T>
LOCKSTEP_CUDA_KERNEL void sum_patches(ConvolutionShape s, Index rows, T const* patches, T* dx, Write write) {
  using Sum = Accumulate<T>;
  auto const taps = s.taps(), inputs = s.input_places();
  auto const result = s.result();
  for (auto at = grid_thread(); at < rows * inputs * s.inputs; at += grid_threads()) {
    auto const input = at % s.inputs, place = at / s.inputs % inputs, row = at / s.inputs / inputs;
    auto const here = place_at(s.extent, place);
    auto const lookers = lookers_at(s, place);
    Sum sum = write == Write::add ? static_cast<Sum>(dx[at]) : Sum{0};
    for (auto d = lookers.begin[0]; d < lookers.end[0]; ++d)
      for (auto h = lookers.begin[1]; h < lookers.end[1]; ++h)
        for (auto w = lookers.begin[2]; w < lookers.end[2]; ++w) {
          auto const output = ((row * result[0] + d) * result[1] + h) * result[2] + w;
          auto const tap =
              ((here[0] - d * s.stride[0] + s.padding[0]) * s.kernel[1] + here[1] - h * s.stride[1] + s.padding[1]) *
                  s.kernel[2] +
              here[2] - w * s.stride[2] + s.padding[2];
          sum += static_cast<Sum>(patches[(output * s.inputs + input) * taps + tap]);
        }
    dx[at] = static_cast<T>(sum);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Functions and shapes as on the host, queued on the stream. float is computed by cuDNN where the target
/// lockstep::cudnn is linked and cuDNN has a deterministic algorithm for the shape; all else as products of patches by
/// cuBLASLt, some samples at a time.
/// @determinism as Gemm's: samples are taken together by shape alone, and nothing is added atomically; cuDNN's bits are
/// those of one version of it on one kind of GPU
template <>
struct Convolution<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  using Scratch = memory::Scratch<memory::CudaResource>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;
  /// What a caller keeps between calls so that nothing is planned anew. Not thread-safe.
#if defined(LOCKSTEP_CUDNN)
  template <class T>
  using Plans = std::conditional_t<std::is_same_v<T, float>, detail::CudnnConvolution, detail::UnplannedConvolution>;
#else
  template <class T>
  using Plans = detail::UnplannedConvolution;
#endif

  template <class T>
  static void forward(Stream stream, ConvolutionShape const& s, Vector<T const> x, Vector<T const> weight,
                      Vector<T const> bias, Vector<T> y, Plans<T>& plans, Scratch& scratch) {
    detail::check_convolution(s, x.size(), weight.size(), y.size());
    if (plans.forward(stream, s, x.data, weight.data, bias.data, y.data, scratch)) return;
    auto* const patches = take<T>(stream, scratch, patch_elements<T>(s));
    for_samples<T>(s, [&](Index first, Index rows) {
      gather(stream, s, rows, x.data + first * s.input_size(), patches);
      Gemm<CudaSpace>::multiply<T>(stream, 1, matrix<T const>(patches, rows * s.output_places(), length(s)),
                                   Transpose::no, matrix(weight.data, s.outputs, length(s)), Transpose::yes, 0,
                                   matrix(y.data + first * s.output_size(), rows * s.output_places(), s.outputs),
                                   bias.data);
    });
  }

  template <class T>
  static void backward_data(Stream stream, ConvolutionShape const& s, Vector<T const> dy, Vector<T const> weight,
                            Vector<T> dx, Write write, Plans<T>& plans, Scratch& scratch) {
    detail::check_convolution(s, dx.size(), weight.size(), dy.size());
    if (plans.backward_data(stream, s, dy.data, weight.data, dx.data, write, scratch)) return;
    auto* const patches = take<T>(stream, scratch, patch_elements<T>(s));
    for_samples<T>(s, [&](Index first, Index rows) {
      Gemm<CudaSpace>::multiply<T>(stream, 1,
                                   matrix(dy.data + first * s.output_size(), rows * s.output_places(), s.outputs),
                                   Transpose::no, matrix(weight.data, s.outputs, length(s)), Transpose::no, 0,
                                   matrix(patches, rows * s.output_places(), length(s)));
      detail::launch("kernel::Convolution::backward_data", stream, rows * s.input_size(), detail::sum_patches<T>, s,
                     rows, patches, dx.data + first * s.input_size(), write);
    });
  }

  template <class T>
  static void backward_weight(Stream stream, ConvolutionShape const& s, Vector<T const> dy, Vector<T const> x,
                              Vector<Accumulate<T>> dweight, Write dweight_write, Vector<Accumulate<T>> dbias,
                              Write dbias_write, Plans<T>& plans, Scratch& scratch) {
    detail::check_convolution(s, x.size(), dweight.size(), dy.size());
    if (!plans.backward_weight(stream, s, dy.data, x.data, dweight.data, dweight_write, scratch))
      multiply_patches<T>(stream, s, dy.data, x.data, matrix(dweight.data, s.outputs, length(s)), dweight_write,
                          scratch);
    if (!dbias.data) return;
    auto const places = s.rows * s.output_places();
    using Bias = ChannelBias<CudaSpace>;
    auto* const partial = take<Accumulate<T>>(stream, scratch, Bias::partial_elements(places, s.outputs));
    Bias::backward<T>(stream, matrix(dy.data, places, s.outputs), dbias, dbias_write, partial);
  }

 private:
  static constexpr Index patch_bytes = Index{64} << 20;  // at most, unless one sample needs more

  template <class T>
  [[nodiscard]] static TensorView<T, 2, CudaSpace> matrix(T* data, Index rows, Index columns) noexcept {
    return {data, {rows, columns}};
  }
  [[nodiscard]] static Index length(ConvolutionShape const& s) noexcept { return s.inputs * s.taps(); }
  /// Samples whose patches are made at once.
  template <class T>
  [[nodiscard]] static Index together(ConvolutionShape const& s) noexcept {
    auto const bytes = std::max<Index>(1, s.output_places() * length(s) * static_cast<Index>(sizeof(T)));
    return std::min(s.rows, std::max<Index>(1, patch_bytes / bytes));
  }
  template <class T>
  [[nodiscard]] static Index patch_elements(ConvolutionShape const& s) noexcept {
    return together<T>(s) * s.output_places() * length(s);
  }
  /// Memory until the next call of this function: the stream uses it in order. What was too small is kept, for queued
  /// work may read it, and a stream that records takes no memory back.
  template <class T>
  [[nodiscard]] static T* take(Stream stream, Scratch& scratch, Index size) {
    auto const before = scratch.allocations();
    scratch.rewind({});
    auto* const taken = scratch.take_elements<T>(size);
    if (scratch.allocations() != before) stream.memory_moved();
    return taken;
  }
  /// f(first, rows) for all samples, in order.
  template <class T, class F>
  static void for_samples(ConvolutionShape const& s, F const& f) {
    auto const rows = together<T>(s);
    for (Index first = 0; first < s.rows; first += rows) f(first, std::min(rows, s.rows - first));
  }
  template <class T>
  static void gather(Stream stream, ConvolutionShape const& s, Index rows, T const* x, T* patches) {
    detail::launch("kernel::Convolution", stream, rows * s.output_places() * s.inputs, detail::make_patches<T>, s, rows,
                   x, patches);
  }
  /// dweight = dy^T times the patches of x.
  template <class T>
  static void multiply_patches(Stream stream, ConvolutionShape const& s, T const* dy, T const* x,
                               TensorView<Accumulate<T>, 2, CudaSpace> dweight, Write write, Scratch& scratch) {
    auto* const patches = take<T>(stream, scratch, patch_elements<T>(s));
    if (s.rows == 0)  // a product over nothing: zeros, or nothing to add
      Gemm<CudaSpace>::multiply<T>(stream, 1, matrix<T const>(dy, 0, s.outputs), Transpose::yes,
                                   matrix<T const>(x, 0, length(s)), Transpose::no,
                                   write == Write::add ? Accumulate<T>{1} : Accumulate<T>{0}, dweight);
    for_samples<T>(s, [&](Index first, Index rows) {
      bool const adds = first > 0 || write == Write::add;
      gather(stream, s, rows, x + first * s.input_size(), patches);
      Gemm<CudaSpace>::multiply<T>(stream, 1, matrix(dy + first * s.output_size(), rows * s.output_places(), s.outputs),
                                   Transpose::yes, matrix<T const>(patches, rows * s.output_places(), length(s)),
                                   Transpose::no, adds ? Accumulate<T>{1} : Accumulate<T>{0}, dweight);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
