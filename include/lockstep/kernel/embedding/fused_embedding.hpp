// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/apply_dropout.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/embedding/assembly.hpp>
#include <lockstep/kernel/embedding/detail/check_embedding.hpp>
#include <lockstep/kernel/embedding/detail/embedding_backward.hpp>
#include <lockstep/kernel/embedding/detail/embedding_row.hpp>
#include <lockstep/kernel/embedding/detail/sum_by_id.hpp>
#include <lockstep/kernel/embedding/embedding_inputs.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Embeddings of any number of tables and dense rows. Assembles them into sequences, and applies scale, normalization
/// and dropout in one pass. Computes their gradients without atomics.
template <class Space>
struct FusedEmbedding : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct FusedEmbedding<HostSpace> : detail::KernelTypes<HostSpace> {
  template <class Scalar, int Rank>
  using View = TensorView<Scalar, Rank, HostSpace>;  ///< view of host memory
  template <class Scalar>
  using Inputs = EmbeddingInputs<Scalar, HostSpace>;  ///< inputs in host memory
  template <class Scalar>
  using Gradients = EmbeddingGradients<Scalar, HostSpace>;  ///< destinations of gradients in host memory

  /// Grouping of ids for the gradient of a table. On the host its storage is reused from batch to batch.
  using Plan = SegmentPlan;

  /// Fills the lengths (padded) or offsets (ragged) of an assembled sequence: element `row` is assembly.bound(row).
  /// @shape out [assembly.bounds()]
  /// @throws DataError (at Contract::normal) if interleaved segments of a row are not equally long
  template <class Bound>
  static void bounds(Stream, Assembly<HostSpace> const& assembly, View<Bound, 1> out) {
    detail::check_interleaved(assembly);
    for (Index row = 0; row < out.size(); ++row) out.data[row] = static_cast<Bound>(assembly.bound(row));
  }

  /// Computes out by the formula of EmbeddingInputs for tokens, and zero in padding. Dropout uses the mask of
  /// kernel::Dropout for element t * width + channel of the sample, where t is the token.
  /// @shape out [layout.slots, width]
  /// @determinism bitwise, for any number of threads, and for any position of the sample in any batch
  /// @throws DataError (at Contract::normal) for an id outside its table or a sequence longer than the positions
  template <class Scalar>
  static void forward(Stream stream, Inputs<Scalar> const& inputs, View<Scalar, 2> out);

  /// Returns the elements of scratch memory that `backward` needs; only the shape determines them.
  template <class Scalar>
  [[nodiscard]] static Index scratch(Inputs<Scalar> const& inputs, Index width) noexcept;

  /// Computes all gradients except those of the tables. Also computes dx, the gradient of the sum of a token's parts,
  /// for `backward_table`. Skips null `targets`. Recomputes the norms, because the forward pass keeps nothing.
  /// @shape dy, dx [layout.slots, width]; if inputs.is_plain_sum(), dx would equal dy, and may be null
  /// @shape memory [scratch(inputs, width)]
  /// @determinism bitwise, for any number of threads: sums over rows in blocks of 64, then over the blocks
  template <class Scalar>
  static void backward(Stream stream, Inputs<Scalar> const& inputs, View<Scalar const, 2> dy, View<Scalar, 2> dx,
                       Gradients<Scalar> const& targets, Scalar* memory);

  /// Returns the elements of memory that `plan` needs.
  [[nodiscard]] static constexpr Index plan_elements(Index slots) noexcept { return slots; }

  /// Plans the sums of `backward_table` for the table of part `part` of segment `segment`.
  /// @shape list [plan_elements(layout.slots)], scratch
  template <class Scalar>
  static void plan(Stream, Inputs<Scalar> const& inputs, int segment, int part, View<std::int32_t, 1> list, Plan& plan);

  /// Computes the gradient of a table: row v is the sum of dx over the slots with id v. Each chunk of the plan is
  /// summed separately, then the chunks of a row in order, so all threads share a frequent row. `overwrite` sets the
  /// rows of absent ids to zero; `add` touches only rows that occur. If `touched` has bits, they decide instead for
  /// each row. Rows that it contains are added to, and others are overwritten and inserted. Absent ones stay unchanged.
  /// Entry e of the planned list is slot e * stride + first.
  /// @shape dx [slots, width]   @shape partial [partial_rows(slots), width], scratch
  /// @shape gradient [vocabulary, width]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward_table(Stream stream, Plan const& plan, View<Scalar const, 2> dx, View<Scalar, 2> partial,
                             View<Scalar, 2> gradient, Write write, TouchedRows const& touched = {}, Index stride = 1,
                             Index first = 0);
  /// Returns the rows of scratch memory that `backward_table` needs.
  [[nodiscard]] static constexpr Index partial_rows(Index slots) noexcept { return detail::sum_by_id_scratch(slots); }
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/embedding/fused_embedding.ipp>
#endif
