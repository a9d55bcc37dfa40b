// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>
#include <lockstep/kernel/convolution/detail/check_convolution.hpp>
#include <lockstep/memory/cuda.cuh>
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

}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream. cuDNN computes float if the target
/// lockstep::cudnn is linked and cuDNN has a deterministic algorithm for the shape. Depthwise convolutions have kernels
/// of their own. All others are matrix products of patches with cuBLASLt, for some samples at a time and group after
/// group; weight gradients with few elements are long products instead.
/// @determinism as for Gemm: only the shape determines which samples are processed together, and nothing is added
/// atomically; bits from cuDNN are those of one version on one kind of GPU
template <>
struct Convolution<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Scratch =
      memory::Scratch<memory::CudaResource>;  ///< working memory on the device, which a caller keeps between calls
  /// Plans that a caller keeps between calls for reuse. Not thread-safe.
#if defined(LOCKSTEP_CUDNN)
  template <class Scalar>
  using Plans =
      std::conditional_t<std::is_same_v<Scalar, float>, detail::CudnnConvolution, detail::UnplannedConvolution>;
#else
  template <class Scalar>
  using Plans = detail::UnplannedConvolution;
#endif

  /// Computes y = x convolved with weight, plus bias.   @throws ShapeError as on the host
  template <class Scalar>
  static void forward(Stream stream, ConvolutionShape const& s, Vector<Scalar const> x, Vector<Scalar const> weight,
                      Vector<Scalar const> bias, Vector<Scalar> y, Plans<Scalar>& plans, Scratch& scratch);

  /// Computes dx from dy and weight, or adds it to dx.
  template <class Scalar>
  static void backward_data(Stream stream, ConvolutionShape const& s, Vector<Scalar const> dy,
                            Vector<Scalar const> weight, Vector<Scalar> dx, Write write, Plans<Scalar>& plans,
                            Scratch& scratch);

  /// Computes dweight and dbias from dy and x; overwrites or adds to each. Both have the type in which Scalar is
  /// summed.
  template <class Scalar>
  static void backward_weight(Stream stream, ConvolutionShape const& s, Vector<Scalar const> dy, Vector<Scalar const> x,
                              Vector<Accumulate<Scalar>> dweight, Write dweight_write, Vector<Accumulate<Scalar>> dbias,
                              Write dbias_write, Plans<Scalar>& plans, Scratch& scratch);

 private:
  static constexpr Index patch_bytes = Index{64} << 20;  // at most, except if one sample needs more

  template <class Scalar>
  [[nodiscard]] static Matrix<Scalar> matrix(Scalar* data, Index rows, Index columns) noexcept;
  [[nodiscard]] static Index length(ConvolutionShape const& s) noexcept { return s.group_inputs() * s.taps(); }
  /// Returns memory that is valid until the next call of this function: the stream uses it in order. Keeps blocks that
  /// were too small, because queued work may read them, and a stream that records does not free memory.
  template <class Scalar>
  [[nodiscard]] static Scalar* take(Stream stream, Scratch& scratch, Index size);

  /// A part that is computed at once: one group of some samples.
  struct Part {
    Index first, rows, group;
  };
  [[nodiscard]] static Index first_input(ConvolutionShape const& s, Part const& part) noexcept;
  template <class Scalar>
  [[nodiscard]] static Matrix<Scalar> of_group(ConvolutionShape const& s, Scalar* weight, Part const& part);

  /// Memory for patches and, for several groups, for the contiguous outputs of one of them.
  template <class Scalar>
  struct Work;

  template <class Scalar>
  static void gather(Stream stream, ConvolutionShape const& s, Part const& part, Scalar const* x, Scalar* patches);
  /// Computes dweight = dy^T times the patches of x.
  template <class Scalar>
  static void multiply_patches(Stream stream, ConvolutionShape const& s, Scalar const* dy, Scalar const* x,
                               Accumulate<Scalar>* dweight, Write write, Scratch& scratch);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/convolution/convolution.icuh>
#endif
