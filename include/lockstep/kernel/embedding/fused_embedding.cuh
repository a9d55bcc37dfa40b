// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/embedding/detail/device_segment_plan.cuh>
#include <lockstep/kernel/embedding/fused_embedding.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and results, queued on the stream. Ids and lengths are not checked
/// with an exception, which would have to wait for the device. An id outside its table, or a token after the last
/// position, gives NaN. Gradients of tables are dense: a context of this space has no touched rows.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct FusedEmbedding<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar, int Rank>
  using View = TensorView<Scalar, Rank, CudaSpace>;  ///< view of device memory
  template <class Scalar>
  using Inputs = EmbeddingInputs<Scalar, CudaSpace>;  ///< inputs in device memory
  template <class Scalar>
  using Gradients = EmbeddingGradients<Scalar, CudaSpace>;  ///< destinations of gradients in device memory
  using Plan =
      detail::DeviceSegmentPlan;  ///< grouping of ids for the gradient of a table, in the memory that `plan` gets

  /// Fills the lengths or offsets of an assembled sequence. Does not check interleaved segments.
  template <class Bound>
  static void bounds(Stream stream, Assembly<CudaSpace> const& assembly, View<Bound, 1> out);

  /// Computes the tokens. Parameters and dense parts are Accumulate<Scalar>, here and in backward.
  template <class Scalar>
  static void forward(Stream stream, Inputs<Accumulate<Scalar>> const& inputs, View<Scalar, 2> out);

  /// Returns the elements of scratch memory that `backward` needs; only the shape determines them.
  template <class Scalar>
  [[nodiscard]] static Index scratch(Inputs<Scalar> const& inputs, Index width) noexcept;

  /// Computes all gradients except those of the tables, and dx for `backward_table`. Skips null targets.
  template <class Scalar>
  static void backward(Stream stream, Inputs<Accumulate<Scalar>> const& inputs, View<Scalar const, 2> dy,
                       View<Accumulate<Scalar>, 2> dx, Gradients<Accumulate<Scalar>> const& targets,
                       Accumulate<Scalar>* memory);

  /// Returns the elements of memory that `plan` needs; the plan stays in that memory.
  [[nodiscard]] static Index plan_elements(Index slots) { return Plan::elements(slots); }

  /// Plans the sums of `backward_table` for the table of part `part` of segment `segment`.
  /// @shape memory [plan_elements(layout.slots)], which keeps the plan
  template <class Scalar>
  static void plan(Stream stream, Inputs<Scalar> const& inputs, int segment, int part, View<std::int32_t, 1> memory,
                   Plan& plan);

  /// Returns the rows of scratch memory that `backward_table` needs.
  [[nodiscard]] static Index partial_rows(Index slots) noexcept { return slots; }

  /// Computes the gradient of a table: row v is the sum of dx over the slots with id v. `overwrite` sets the rows of
  /// absent ids to zero. The last three arguments are not used.
  template <class Scalar>
  static void backward_table(Stream stream, Plan const& plan, View<Scalar const, 2> dx,
                             View<Accumulate<Scalar>, 2> partial, View<Accumulate<Scalar>, 2> gradient, Write write,
                             TouchedRows const& = {}, Index = 1, Index = 0);

 private:
  static constexpr Index max_blocks = 1024;  // for rows of several chunks, which are few in most batches

  /// Returns whether all rows of a matrix of this width consist of whole, aligned accesses of 16 bytes of type Scalar.
  template <class Scalar>
  [[nodiscard]] static bool is_wide(Index width, void const* data) noexcept;

  /// Calls f(type of the vectorized access). A thread processes the channels of a block of random bits with dropout.
  /// Without dropout, it does so only if a norm's lanes could not keep all their channels otherwise.
  template <class Scalar, class Function>
  static void with_access(Inputs<Accumulate<Scalar>> const& inputs, Index width, Function const& f);

  /// Calls f(std::bool_constant), whether there is dropout. With it, `Access` has the channels of a block of random
  /// bits.
  template <class Access, class Scalar, class Function>
  static void with_dropout(Inputs<Scalar> const& inputs, Function const& f);

  template <class Scalar>
  static void zero_padding(Stream stream, Inputs<Scalar> const& inputs, Gradients<Scalar> const& targets, int segment,
                           Index width);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/embedding/fused_embedding.icuh>
#endif
