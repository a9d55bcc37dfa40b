// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>
#include <lockstep/kernel/convolution/detail/check_convolution.hpp>
#include <lockstep/kernel/convolution/detail/convolution_depthwise.cuh>
#include <lockstep/kernel/convolution/detail/long_product.cuh>
#include <lockstep/kernel/copy/channels.cuh>
#include <lockstep/kernel/detail/spatial_range.cuh>
#include <lockstep/kernel/elementwise/channel_bias.cuh>
#include <lockstep/kernel/gemm/gemm.cuh>
#if defined(LOCKSTEP_CUDNN)
#include <lockstep/kernel/convolution/detail/convolution_cudnn.cuh>
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Empty plans for builds without a library: Gemm keeps its choices with the stream.
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

/// Computes patches[position, i, k] = input i of a group at tap k, zero in padding. x starts with the group's first
/// input. One thread processes all taps of an input, because the index divisions cost more than the copies.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void make_patches(ConvolutionShape s, Index inputs, Index rows, Scalar const* x, Scalar* patches) {
  auto const taps = s.taps();
  auto const result = s.result();
  auto const positions = elements(result);
  for (auto at = grid_thread(); at < rows * positions * inputs; at += grid_threads()) {
    auto const input = at % inputs, position = at / inputs % positions, row = at / inputs / positions;
    auto const to = position_at(result, position);
    auto const d0 = to[0] * s.stride[0] - s.padding[0], h0 = to[1] * s.stride[1] - s.padding[1],
               w0 = to[2] * s.stride[2] - s.padding[2];
    auto const* const sample = x + row * s.input_size() + input;
    auto* patch = patches + at * taps;
    for (auto d = d0; d < d0 + s.kernel[0] * s.dilation[0]; d += s.dilation[0])
      for (auto h = h0; h < h0 + s.kernel[1] * s.dilation[1]; h += s.dilation[1]) {
        bool const inside = d >= 0 && d < s.extent[0] && h >= 0 && h < s.extent[1];
        auto const* const line = sample + (d * s.extent[1] + h) * s.extent[2] * s.inputs;
        for (auto w = w0; w < w0 + s.kernel[2] * s.dilation[2]; w += s.dilation[2], ++patch)
          *patch = inside && w >= 0 && w < s.extent[2] ? line[w * s.inputs] : Scalar{0};
      }
  }
}

/// Computes dx = the sum over the patches that contain an element, in order of their positions, or adds it to dx. One
/// thread processes one element of x of a group. dx starts with the group's first input.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void sum_patches(ConvolutionShape s, Index inputs, Index rows, Scalar const* patches, Scalar* dx,
                                      Write write) {
  using Sum = Accumulate<Scalar>;
  auto const taps = s.taps(), from_positions = s.input_positions(), to_positions = s.output_positions();
  for (auto at = grid_thread(); at < rows * from_positions * inputs; at += grid_threads()) {
    auto const input = at % inputs, position = at / inputs % from_positions, row = at / inputs / from_positions;
    auto& to = dx[(row * from_positions + position) * s.inputs + input];
    Sum sum = write == Write::add ? static_cast<Sum>(to) : Sum{0};
    for_outputs_reading(s, position, [&](Index output, Index tap) {
      sum += static_cast<Sum>(patches[((row * to_positions + output) * inputs + input) * taps + tap]);
    });
    to = static_cast<Scalar>(sum);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream. cuDNN computes float if the target
/// lockstep::cudnn is linked and cuDNN has a deterministic algorithm for the shape. Depthwise convolutions have kernels
/// of their own. All others are matrix products of patches with cuBLASLt, for some samples at a time and group after
/// group; weight gradients with few elements are long products instead.
/// @determinism as for Gemm: only the shape determines which samples are processed together, and nothing is added
/// atomically; bits from cuDNN are those of one version on one kind of GPU
template <>
struct Convolution<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Scratch = memory::Scratch<memory::CudaResource>;
  /// Plans that a caller keeps between calls for reuse. Not thread-safe.
#if defined(LOCKSTEP_CUDNN)
  template <class Scalar>
  using Plans =
      std::conditional_t<std::is_same_v<Scalar, float>, detail::CudnnConvolution, detail::UnplannedConvolution>;
#else
  template <class Scalar>
  using Plans = detail::UnplannedConvolution;
#endif

  template <class Scalar>
  static void forward(Stream stream, ConvolutionShape const& s, Vector<Scalar const> x, Vector<Scalar const> weight,
                      Vector<Scalar const> bias, Vector<Scalar> y, Plans<Scalar>& plans, Scratch& scratch) {
    detail::check_convolution(s, x.size(), weight.size(), y.size());
    if (plans.forward(stream, s, x.data, weight.data, bias.data, y.data, scratch)) return;
    if (s.is_depthwise()) return detail::depthwise_forward(stream, s, x.data, weight.data, bias.data, y.data);
    Work<Scalar> const work(stream, s, scratch);
    work.for_parts([&](Part const& part) {
      gather(stream, s, part, x.data, work.patches);
      auto const to = work.outputs(y.data, part);
      Gemm<CudaSpace>::multiply<Scalar>(stream, 1, work.of_patches(part), Transpose::no, of_group(s, weight.data, part),
                                        Transpose::yes, 0, to,
                                        bias.data ? bias.data + part.group * s.group_outputs() : nullptr);
      if (s.groups > 1)
        Channels<CudaSpace>::put<Scalar>(stream, to, part.group * s.group_outputs(), work.all_outputs(y.data, part));
    });
  }

  template <class Scalar>
  static void backward_data(Stream stream, ConvolutionShape const& s, Vector<Scalar const> dy,
                            Vector<Scalar const> weight, Vector<Scalar> dx, Write write, Plans<Scalar>& plans,
                            Scratch& scratch) {
    detail::check_convolution(s, dx.size(), weight.size(), dy.size());
    if (plans.backward_data(stream, s, dy.data, weight.data, dx.data, write, scratch)) return;
    if (s.is_depthwise()) return detail::depthwise_data(stream, s, dy.data, weight.data, dx.data, write);
    Work<Scalar> const work(stream, s, scratch);
    work.for_parts([&](Part const& part) {
      Gemm<CudaSpace>::multiply<Scalar>(stream, 1, work.slopes(stream, dy.data, part), Transpose::no,
                                        of_group(s, weight.data, part), Transpose::no, 0, work.of_patches(part));
      detail::launch("kernel::Convolution::backward_data", stream, part.rows * s.input_positions() * s.group_inputs(),
                     detail::sum_patches<Scalar>, s, s.group_inputs(), part.rows, work.patches,
                     dx.data + first_input(s, part), write);
    });
  }

  template <class Scalar>
  static void backward_weight(Stream stream, ConvolutionShape const& s, Vector<Scalar const> dy, Vector<Scalar const> x,
                              Vector<Accumulate<Scalar>> dweight, Write dweight_write, Vector<Accumulate<Scalar>> dbias,
                              Write dbias_write, Plans<Scalar>& plans, Scratch& scratch) {
    detail::check_convolution(s, x.size(), dweight.size(), dy.size());
    if (!plans.backward_weight(stream, s, dy.data, x.data, dweight.data, dweight_write, scratch)) {
      if (s.is_depthwise())
        detail::depthwise_weight(stream, s, dy.data, x.data, dweight.data, dweight_write,
                                 take<Accumulate<Scalar>>(stream, scratch, detail::depthwise_partials(s)));
      else
        multiply_patches<Scalar>(stream, s, dy.data, x.data, dweight.data, dweight_write, scratch);
    }
    if (!dbias.data) return;
    auto const positions = s.rows * s.output_positions();
    using Bias = ChannelBias<CudaSpace>;
    auto* const partial = take<Accumulate<Scalar>>(stream, scratch, Bias::partial_elements(positions, s.outputs));
    Bias::backward<Scalar>(stream, matrix(dy.data, positions, s.outputs), dbias, dbias_write, partial);
  }

 private:
  static constexpr Index patch_bytes = Index{64} << 20;  // at most, except if one sample needs more

  template <class Scalar>
  [[nodiscard]] static Matrix<Scalar> matrix(Scalar* data, Index rows, Index columns) noexcept {
    return {data, {rows, columns}};
  }
  [[nodiscard]] static Index length(ConvolutionShape const& s) noexcept { return s.group_inputs() * s.taps(); }
  /// Returns memory that is valid until the next call of this function: the stream uses it in order. Keeps blocks that
  /// were too small, because queued work may read them, and a stream that records does not free memory.
  template <class Scalar>
  [[nodiscard]] static Scalar* take(Stream stream, Scratch& scratch, Index size) {
    auto const before = scratch.allocations();
    scratch.rewind({});
    auto* const taken = scratch.take_elements<Scalar>(size);
    if (scratch.allocations() != before) stream.memory_moved();
    return taken;
  }

  /// A part that is computed at once: one group of some samples.
  struct Part {
    Index first, rows, group;
  };
  [[nodiscard]] static Index first_input(ConvolutionShape const& s, Part const& part) noexcept {
    return part.first * s.input_size() + part.group * s.group_inputs();
  }
  template <class Scalar>
  [[nodiscard]] static Matrix<Scalar> of_group(ConvolutionShape const& s, Scalar* weight, Part const& part) {
    return matrix(weight + part.group * s.group_outputs() * length(s), s.group_outputs(), length(s));
  }

  /// Memory for patches and, for several groups, for the contiguous outputs of one of them.
  template <class Scalar>
  struct Work {
    ConvolutionShape s;
    Index together;  ///< samples whose patches are computed at once
    Scalar *patches, *group;
    Accumulate<Scalar>* partial = nullptr;  ///< for long products, if `Sums` is `partial`

    enum class Sums { whole, partial };
    Work(Stream stream, ConvolutionShape const& shape, Scratch& scratch, Sums sums = Sums::whole) : s(shape) {
      auto const bytes = std::max<Index>(1, s.output_positions() * length(s) * static_cast<Index>(sizeof(Scalar)));
      together = std::min(s.rows, std::max<Index>(1, patch_bytes / bytes));
      auto const positions = together * s.output_positions();
      auto const of_patches = (positions * length(s) + 127) / 128 * 128;  // aligns the group's outputs
      auto const of_group = s.groups > 1 ? (positions * s.group_outputs() + 127) / 128 * 128 : 0;
      auto const product = weight_product(positions);
      auto const partials =
          sums == Sums::partial && product.template is_long<Scalar>() ? product.partial_elements() : 0;
      constexpr Index ratio = sizeof(Accumulate<Scalar>) / sizeof(Scalar);
      patches = take<Scalar>(stream, scratch, of_patches + of_group + ratio * partials);
      group = patches + of_patches;
      if (partials > 0) partial = reinterpret_cast<Accumulate<Scalar>*>(group + of_group);
    }
    /// Returns the weight gradient of a group over `positions` positions of y.
    [[nodiscard]] detail::LongProduct weight_product(Index positions) const noexcept {
      return detail::LongProduct(s.group_outputs(), length(s), together * s.output_positions()).first(positions);
    }
    /// Calls f(part) for all samples and groups, in order.
    template <class Function>
    void for_parts(Function const& f) const {
      for (Index first = 0; first < s.rows; first += together)
        for (Index g = 0; g < s.groups; ++g) f(Part{first, std::min(together, s.rows - first), g});
    }
    [[nodiscard]] Matrix<Scalar> of_patches(Part const& part) const noexcept {
      return matrix(patches, part.rows * s.output_positions(), length(s));
    }
    /// Returns a part's outputs with the channels of all groups.
    template <class Other>
    [[nodiscard]] Matrix<Other> all_outputs(Other* y, Part const& part) const noexcept {
      return matrix(y + part.first * s.output_size(), part.rows * s.output_positions(), s.outputs);
    }
    /// Returns the matrix in which the part's outputs are computed.
    [[nodiscard]] Matrix<Scalar> outputs(Scalar* y, Part const& part) const noexcept {
      if (s.groups == 1) return all_outputs(y, part);
      return matrix(group, part.rows * s.output_positions(), s.group_outputs());
    }
    /// Returns the gradient of the part's outputs, with the group's channels contiguous.
    [[nodiscard]] Matrix<Scalar const> slopes(Stream stream, Scalar const* dy, Part const& part) const {
      if (s.groups == 1) return all_outputs(dy, part);
      auto const to = matrix(group, part.rows * s.output_positions(), s.group_outputs());
      Channels<CudaSpace>::take<Scalar>(stream, all_outputs(dy, part), part.group * s.group_outputs(), to,
                                        Write::overwrite);
      return to;
    }
  };

  template <class Scalar>
  static void gather(Stream stream, ConvolutionShape const& s, Part const& part, Scalar const* x, Scalar* patches) {
    detail::launch("kernel::Convolution", stream, part.rows * s.output_positions() * s.group_inputs(),
                   detail::make_patches<Scalar>, s, s.group_inputs(), part.rows, x + first_input(s, part), patches);
  }
  /// Computes dweight = dy^T times the patches of x.
  template <class Scalar>
  static void multiply_patches(Stream stream, ConvolutionShape const& s, Scalar const* dy, Scalar const* x,
                               Accumulate<Scalar>* dweight, Write write, Scratch& scratch) {
    if (s.rows == 0)  // k = 0: zeros, or nothing to add
      return Gemm<CudaSpace>::multiply<Scalar>(stream, 1, matrix<Scalar const>(dy, 0, s.outputs), Transpose::yes,
                                               matrix<Scalar const>(x, 0, length(s)), Transpose::no,
                                               write == Write::add ? Accumulate<Scalar>{1} : Accumulate<Scalar>{0},
                                               matrix(dweight, s.outputs, length(s)));
    Work<Scalar> const work(stream, s, scratch, Work<Scalar>::Sums::partial);
    work.for_parts([&](Part const& part) {
      bool const adds = part.first > 0 || write == Write::add;
      gather(stream, s, part, x, work.patches);
      if (auto const product = work.weight_product(part.rows * s.output_positions());
          work.partial && product.template is_long<Scalar>())
        return detail::multiply_long<Scalar>(
            "kernel::Convolution::backward_weight", stream, product, work.slopes(stream, dy, part).data, work.patches,
            of_group(s, dweight, part).data, adds ? Write::add : Write::overwrite, work.partial);
      Gemm<CudaSpace>::multiply<Scalar>(stream, 1, work.slopes(stream, dy, part), Transpose::yes, work.of_patches(part),
                                        Transpose::no, adds ? Accumulate<Scalar>{1} : Accumulate<Scalar>{0},
                                        of_group(s, dweight, part));
    });
  }
};

}}}  // namespace lockstep::kernel
