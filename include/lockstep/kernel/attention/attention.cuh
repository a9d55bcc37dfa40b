// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/attention/attention.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {
template <class Scalar>
struct AttentionArguments;
}  // namespace detail

/// Passes of a stream's attention in 16 bits: forward and backward count separately.
struct AttentionPasses {
  Index by_cudnn = 0;       ///< queued, or recorded
  Index not_by_cudnn = 0;   ///< although cuDNN was to be used
  std::string reason = {};  ///< why cuDNN did not compute one of the latter
};

/// CUDA version with the host's functions, shapes, masks and formulas, queued on the stream. The forward kernel passes
/// over the keys once and corrects the softmax as it proceeds. The backward kernels pass over queries and keys once
/// each, so that each gradient has one writer. Products run on tensor cores, except in double and on GPUs older than
/// compute capability 8.0; sums are float. In bfloat16 and float16, probabilities and the scores' gradients are rounded
/// to that type before their product. A product of floats is the sum of three TF32 products, which loses less than
/// 2^-20 of it.
///
/// On request, cuDNN's fused kernels compute in bfloat16 and float16: see use_cudnn. They do not compute dropout, bias
/// or ragged layouts.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order;
/// bits from cuDNN are those of one version on one kind of GPU
template <>
struct Attention<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar, int Rank>
  using View = TensorView<Scalar, Rank, CudaSpace>;  ///< view of device memory

  template <class Scalar>
  using Inputs = detail::AttentionInputs<Scalar, CudaSpace>;  ///< arguments that both passes share
  template <class Scalar>
  using Target = detail::AttentionTarget<Scalar>;  ///< destination of one gradient
  template <class Scalar>
  using Gradients =
      detail::AttentionGradients<Scalar>;  ///< destinations of all gradients; one for the bias may be null

  /// The widest head. Kernels without tensor cores support at most 64 channels in each type.
  template <class Scalar>
  static constexpr Index max_head_width = sizeof(Scalar) == sizeof(double) ? 64 : 128;

  /// Sets whether cuDNN computes the stream's passes from now on, if it can; by default it computes none. It can if
  /// cuDNN is 9.16 or later, the type has 16 bits, there is no dropout and no bias, layouts are padded, heads have a
  /// multiple of 8 channels up to 256, and cuDNN has a deterministic kernel that needs at most 512 MiB of workspace;
  /// for backward also if gradients are overwritten and the compute capability is 8 or 9. Otherwise Lockstep's kernels
  /// compute the pass. Both kinds of kernels keep the same `out` and `log_sums`, so forward and backward may differ.
  /// Values in padding must be finite. Do not change it between a call of `forward_scratch` or `scratch` and the pass.
  /// @throws ConfigError if lockstep::cudnn is not linked
  static void use_cudnn(Stream stream, bool use);
  /// Returns the version of the linked cuDNN, such as 91900 for 9.19.0, or 0 if lockstep::cudnn is not linked.
  [[nodiscard]] static Index cudnn_version() noexcept;
  /// Returns the counts of the stream's passes so far. They are 0 if lockstep::cudnn is not linked.
  [[nodiscard]] static AttentionPasses passes(Stream stream);

  /// Returns the elements of scratch memory that `forward` needs. If cuDNN computes the pass, the first call for a
  /// shape plans it.
  template <class Scalar>
  [[nodiscard]] static Index forward_scratch(Stream stream, Inputs<Scalar> const& in);
  /// Returns the elements of scratch memory that `backward` needs. If cuDNN computes the pass, the first call for a
  /// shape plans it.
  template <class Scalar>
  [[nodiscard]] static Index scratch(Stream stream, Inputs<Scalar> const& in);

  /// Queues the forward pass.
  /// @throws ShapeError as on the host, and for a head wider than max_head_width, unless cuDNN computes it
  template <class Scalar>
  static void forward(Stream stream, Inputs<Scalar> const& in, View<Scalar, 2> out,
                      View<Accumulate<Scalar>, 2> log_sums, View<Accumulate<Scalar>, 1> memory);

  /// Queues the backward pass from the results of `forward`.   @throws ShapeError as `forward`
  template <class Scalar>
  static void backward(Stream stream, Inputs<Scalar> const& in, View<Scalar const, 2> out,
                       View<Accumulate<Scalar> const, 2> log_sums, View<Scalar const, 2> dout,
                       Gradients<Scalar> const& to, View<Accumulate<Scalar>, 1> memory);

 private:
  template <int n>
  struct Constant;

  /// Returns how many numbers the backward pass stores for each query of a head: statistics and dropout's bits.
  template <class Scalar>
  [[nodiscard]] static Index per_query(Inputs<Scalar> const& in);

  /// Calls f with the flag as a constant.
  template <class Function>
  static void with_flag(bool flag, Function const& f);

  /// Calls f with the kernel's row tiles as a constant: 2 for `many` rows, if it exists with `two`, or else 1. More
  /// rows per block read the other side less often, but leave short sequences few blocks. Results are equal.
  template <class Scalar, int channels, bool two, class Function>
  static void with_row_tiles(bool many, Function const& f);

  /// Returns the number of blocks that the backward pass has for the queries of one head, if it adds a bias's gradient.
  template <class Scalar>
  [[nodiscard]] static Index query_tiles(Inputs<Scalar> const& in);

  /// Returns whether kernels may access 16 bytes of a head at once.
  template <class Scalar>
  [[nodiscard]] static bool is_wide(Inputs<Scalar> const& in, std::initializer_list<void const*> arrays);

  template <class Scalar>
  [[nodiscard]] static detail::AttentionArguments<Scalar> arguments_of(Inputs<Scalar> const& in);

  /// Counts `products` matrix products of each head, for all positions, padding included. On tensor cores, a product of
  /// floats is three in TF32, each of which takes as long as two in 16 bits.
  template <class Scalar, bool on_tensor_cores>
  static void count_products(Stream stream, Inputs<Scalar> const& in, int products);

  /// Queues one block, with that much dynamic shared memory, for each tile of `length` rows, for each head of each row.
  template <class Shape, int shared_bytes = Shape::dynamic_bytes, class Scalar, class... Parameters, class... Arguments>
  static void launch(char const* name, Stream stream, Inputs<Scalar> const& in, Index heads, Index length,
                     void (*kernel)(Parameters...), Arguments const&... arguments);

  /// Calls f with true if the current GPU computes attention in Scalar on tensor cores, or else with false, as a
  /// constant.
  template <class Scalar, class Function>
  static void with_path(Function const& f);

  /// Calls f with with_path's constant and a second one: the head's channels, rounded up; without tensor cores, the
  /// number of them per lane. Checks the head's width.
  template <class Scalar, class Function>
  static void with_shape(Inputs<Scalar> const& in, Function const& f);

  /// Returns f(cuDNN's attention), or false if cuDNN is not linked or never computes Scalar.
  template <class Scalar, class Function>
  [[nodiscard]] static auto with_cudnn(Stream stream, Function const& f);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/attention/attention.icuh>
#endif
