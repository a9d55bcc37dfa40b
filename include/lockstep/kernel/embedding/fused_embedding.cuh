// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/embedding/detail/device_segment_plan.cuh>
#include <lockstep/kernel/embedding/detail/embedding_kernels.cuh>
#include <lockstep/kernel/embedding/detail/embedding_sums.cuh>
#include <lockstep/kernel/embedding/fused_embedding.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and results, queued on the stream. Ids and lengths are not checked
/// with an exception, which would have to wait for the device. An id outside its table, or a token after the last
/// position, gives NaN. Gradients of tables are dense: a context of this space has no touched rows.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct FusedEmbedding<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar, int Rank>
  using View = TensorView<Scalar, Rank, CudaSpace>;
  template <class Scalar>
  using Inputs = EmbeddingInputs<Scalar, CudaSpace>;
  template <class Scalar>
  using Gradients = EmbeddingGradients<Scalar, CudaSpace>;
  using Plan = detail::DeviceSegmentPlan;

  template <class Bound>
  static void bounds(Stream stream, Assembly<CudaSpace> const& assembly, View<Bound, 1> out) {
    detail::for_elements("kernel::FusedEmbedding::bounds", stream, out.size(),
                         [=] __device__(Index row) { out.data[row] = static_cast<Bound>(assembly.bound(row)); });
  }

  /// Parameters and dense parts are Accumulate<Scalar>, here and in backward.
  template <class Scalar>
  static void forward(Stream stream, Inputs<Accumulate<Scalar>> const& inputs, View<Scalar, 2> out) {
    using Sum = Accumulate<Scalar>;
    auto const slots = inputs.assembly.layout.slots, width = out.extent[1];
    auto const name = "kernel::FusedEmbedding::forward";
    with_access<Scalar>(inputs, width, [&]<class Access>(std::type_identity<Access>) {
      auto const shares = detail::SlotShares::of<Access>(slots, width, inputs.norm);
      if (detail::rows_suffice<Access>(inputs, width, out.data))
        return with_dropout<Access>(inputs, [&]<bool drops>(std::bool_constant<drops>) {
          detail::launch(name, stream, shares.threads(slots), detail::embed_rows<Access, drops, Scalar, Sum>, inputs,
                         width, shares, static_cast<Sum>(inputs.mask.scale()), out.data);
        });
      detail::launch(name, stream, shares.threads(slots),
                     inputs.norm != Norm::none ? detail::embed_normalized_slots<Access, Scalar, Sum>
                                               : detail::embed_slots<Access, Scalar, Sum>,
                     inputs, width, shares, out.data);
    });
  }

  template <class Scalar>
  [[nodiscard]] static Index scratch(Inputs<Scalar> const& inputs, Index width) noexcept {
    auto const& layout = inputs.assembly.layout;
    auto const chunks = inputs.norm == Norm::none ? 0 : detail::norm_chunks(layout.slots);
    return std::max({2 * chunks * width + detail::column_partials(chunks, width),
                     detail::column_partials(layout.slots, inputs.type.size()),
                     detail::column_partials(layout.rows, inputs.position.size())});
  }

  template <class Scalar>
  static void backward(Stream stream, Inputs<Accumulate<Scalar>> const& inputs, View<Scalar const, 2> dy,
                       View<Accumulate<Scalar>, 2> dx, Gradients<Accumulate<Scalar>> const& targets,
                       Accumulate<Scalar>* memory) {
    using Sum = Accumulate<Scalar>;
    auto const width = dy.extent[1];
    auto const& assembly = inputs.assembly;
    auto const name = "kernel::FusedEmbedding::backward";
    for (int segment = 0; segment < assembly.count; ++segment) zero_padding(stream, inputs, targets, segment, width);
    auto const slots = assembly.layout.slots;
    if (inputs.norm == Norm::none) {
      bool const dense = std::any_of(targets.dense, targets.dense + inputs.first_part[assembly.count],
                                     [](auto const& target) { return target.data != nullptr; });
      if (dx.data || dense)
        with_access<Scalar>(inputs, width, [&]<class Access>(std::type_identity<Access>) {
          auto const shares = detail::SlotShares::of<Access>(slots, width, inputs.norm);
          if (!dense && width % Access::size == 0 && detail::begins_aligned(dy.data) && detail::begins_aligned(dx.data))
            return with_dropout<Access>(inputs, [&]<bool drops>(std::bool_constant<drops>) {
              detail::launch(name, stream, shares.threads(slots),
                             detail::embed_rows_backward<Access, drops, Scalar, Sum>, inputs, width, shares,
                             static_cast<Sum>(inputs.mask.scale()), dy.data, dx.data);
            });
          detail::launch(name, stream, shares.threads(slots), detail::embed_slots_backward<Access, Scalar, Sum>, inputs,
                         targets, width, shares, dy.data, dx.data);
        });
    } else {
      auto const chunks = detail::norm_chunks(slots);
      with_access<Scalar>(inputs, width, [&]<class Access>(std::type_identity<Access>) {
        detail::launch(name, stream, chunks * detail::warp,
                       detail::embed_normalized_slots_backward<Access, Scalar, Sum>, inputs, targets, width, dy.data,
                       dx.data, memory);
      });
      auto const sum = [&](Sum const* of_chunks, typename Gradients<Sum>::Target target) {
        if (target.data)
          detail::sum_matrix_columns(name, stream, chunks, width, of_chunks, memory + 2 * chunks * width,
                                     {target.data, target.write});
      };
      sum(memory, targets.weight);
      sum(memory + chunks * width, targets.bias);
    }
    auto const sum_slots = [&]<class Stored>(Stored const* d) {
      if (targets.type.data)
        detail::sum_columns<Sum, 1>(name, stream, slots, inputs.type.size(),
                                    detail::TypeTerm<Stored, Sum>{assembly, width, d}, memory,
                                    {targets.type.data, targets.type.write});
      if (!targets.position.data) return;
      detail::ColumnTarget<Sum> const to{targets.position.data, targets.position.write};
      auto const sequences = assembly.layout.rows, columns = inputs.position.size();
      if (inputs.position_unit == PositionUnit::tokens)
        detail::sum_row_starts<Stored, 1>(name, stream, sequences, columns,
                                          detail::TokensOfRow<Stored>{assembly.layout, width, d},
                                          is_wide<Stored>(width, d), memory, to);
      else
        detail::sum_columns<Sum, 1>(name, stream, sequences, columns, detail::StepTerm<Stored, Sum>{assembly, width, d},
                                    memory, to);
    };
    dx.data ? sum_slots(dx.data) : sum_slots(dy.data);
    if (inputs.scale != Sum(1))
      detail::for_vectorized<Sum>(name, stream, dx.size(),
                                  [=, scale = inputs.scale] __device__(detail::WidestAccess<Sum> const& access) {
                                    detail::AccessNumbers<Sum> values;
                                    access.load(dx.data, values);
                                    for (auto& value : values) value *= scale;
                                    access.store(values, dx.data);
                                  });
  }

  /// Returns the elements of memory that `plan` needs; the plan stays in that memory.
  [[nodiscard]] static Index plan_elements(Index slots) { return Plan::elements(slots); }

  template <class Scalar>
  static void plan(Stream stream, Inputs<Scalar> const& inputs, int segment, int part, View<std::int32_t, 1> memory,
                   Plan& plan) {
    plan.build(stream, inputs.assembly, segment, inputs.parts[part].ids, inputs.parts[part].rows.extent[0], memory);
  }

  /// Returns the rows of scratch memory that `backward_table` needs.
  [[nodiscard]] static Index partial_rows(Index slots) noexcept { return slots; }

  template <class Scalar>
  static void backward_table(Stream stream, Plan const& plan, View<Scalar const, 2> dx,
                             View<Accumulate<Scalar>, 2> partial, View<Accumulate<Scalar>, 2> gradient, Write write,
                             TouchedRows const& = {}, Index = 1, Index = 0) {
    auto const width = gradient.extent[1];
    if (gradient.size() == 0) return;
    if (write == Write::overwrite)
      memory::check_cuda(
          cudaMemsetAsync(gradient.data, 0, static_cast<std::size_t>(gradient.size()) * sizeof(Accumulate<Scalar>),
                          stream.get()),
          "cudaMemsetAsync");
    auto const name = "kernel::FusedEmbedding::backward_table";
    bool const wide = is_wide<Scalar>(width, dx.data);
    detail::launch(name, stream, plan.chunks() * detail::tiles_of_chunk<Scalar>(width) * Index{detail::warp},
                   wide ? detail::sum_chunks<Scalar, Accumulate<Scalar>, true>
                        : detail::sum_chunks<Scalar, Accumulate<Scalar>, false>,
                   plan.order(), plan.begin(), plan.chunk_row(), plan.first(), plan.rows(), plan.total(), width,
                   dx.data, partial.data, gradient.data, write);
    detail::launch_grid(name, stream,
                        {static_cast<unsigned>(std::min(plan.max_several(), max_blocks)),
                         static_cast<unsigned>((width + detail::warp - 1) / detail::warp)},
                        detail::threads_per_block, detail::sum_rows_of_chunks<Accumulate<Scalar>>, plan.several(),
                        plan.first(), plan.rows(), plan.total(), width, partial.data, gradient.data, write);
  }

 private:
  static constexpr Index max_blocks = 1024;  // for rows of several chunks, which are few in most batches

  /// Returns whether all rows of a matrix of this width consist of whole, aligned accesses of 16 bytes of type Scalar.
  template <class Scalar>
  [[nodiscard]] static bool is_wide(Index width, void const* data) noexcept {
    return width % detail::elements_per_access<Scalar> == 0 && detail::begins_aligned(data);
  }

  /// Calls f(type of the vectorized access). A thread processes the channels of a block of random bits with dropout.
  /// Without dropout, it does so only if a norm's lanes could not keep all their channels otherwise.
  template <class Scalar, class Function>
  static void with_access(Inputs<Accumulate<Scalar>> const& inputs, Index width, Function const& f) {
    using Masked = detail::DropoutAccess;
    bool const keeps_only_masked = inputs.norm != Norm::none &&
                                   width > detail::channels_per_warp<detail::WidestAccess<Scalar>> &&
                                   width <= detail::channels_per_warp<Masked>;
    keeps_only_masked ? f(std::type_identity<Masked>{}) : detail::with_access<Scalar>(inputs.mask, f);
  }

  /// Calls f(std::bool_constant), whether there is dropout. With it, `Access` has the channels of a block of random
  /// bits.
  template <class Access, class Scalar, class Function>
  static void with_dropout(Inputs<Scalar> const& inputs, Function const& f) {
    if constexpr (std::is_same_v<Access, detail::DropoutAccess>)
      if (inputs.mask.active()) return f(std::true_type{});
    f(std::false_type{});
  }

  template <class Scalar>
  static void zero_padding(Stream stream, Inputs<Scalar> const& inputs, Gradients<Scalar> const& targets, int segment,
                           Index width) {
    auto const layout = inputs.assembly.segments[segment];
    for (int p = inputs.first_part[segment]; p < inputs.first_part[segment + 1]; ++p) {
      auto const target = targets.dense[p];
      if (!target.data || target.write == Write::add || layout.is_ragged()) continue;
      detail::launch("kernel::FusedEmbedding::backward", stream, layout.slots * width, detail::zero_padding<Scalar>,
                     layout, width, target.data);
    }
  }
};

}}}  // namespace lockstep::kernel
