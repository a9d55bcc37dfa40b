// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/embedding/fused_embedding.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/embedding/segments.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Returns the tables that segments name, for Context::on_backward.
template <class Part>
[[nodiscard]] std::tuple<> tables_of(Part const&) {
  return {};
}
template <class Column>
[[nodiscard]] std::tuple<Parameter const&> tables_of(Embedding::Lookup<Column> const& lookup) {
  return {lookup.table};
}
template <class... Part>
[[nodiscard]] auto tables_of(Sum<Part...> const& sum) {
  return std::apply([](auto const&... part) { return std::tuple_cat(tables_of(part)...); }, sum.parts);
}
template <kernel::Arrangement arrangement, class... Segment>
[[nodiscard]] auto tables_of(Segments<arrangement, Segment...> const& segments) {
  return std::apply([](auto const&... segment) { return std::tuple_cat(tables_of(segment)...); }, segments.all);
}

/// Parts of a fused embedding in its kernel's form, and the source of each part.
template <class Context>
class EmbeddingParts {
 public:
  using Scalar = typename Context::Scalar;
  using Real = typename Context::Real;
  using Space = typename Context::Space;
  using Kernel = kernel::FusedEmbedding<Space>;
  using Inputs = typename Kernel::template Inputs<Real>;
  /// On the host, the plan that came with the column, or null. On a device, the plan that `plan_backward_async` makes.
  using Plan = std::conditional_t<Space::host_accessible, SegmentPlan const*, typename Kernel::Plan>;

  struct Source {
    Parameter const* table = nullptr;  // null for `dense`
    VariableOf<Context, 2> dense{};
    Plan plan{};
    int segment = 0;
  };

  Inputs inputs{};
  Source sources[Inputs::max_parts];

  /// @param own table of the columns that name none
  /// @param named a parameter of the layer, for messages
  /// @param sample_positions each sample's position in the epoch
  /// @param width of the result
  EmbeddingParts(Context& context, Parameter const& own, Parameter const& named, Index width,
                 TensorView<Index const, 1, Space> sample_positions)
      : context_(&context), own_(&own), named_(&named), sample_positions_(sample_positions), width_(width) {}

  /// On a device, plans the sums of the tables' gradients for backward, in parallel with work that is queued from now
  /// on. Join the stream before you use the plans.
  void plan_backward_async() {
    if constexpr (!Space::host_accessible) {
      if (!context_->recording()) return;
      auto const parallel_stream = context_->stream().fork();
      Extents<1> const elements{Kernel::plan_elements(inputs.assembly.layout.slots)};
      for (int p = 0; p < count(); ++p)
        if (sources[p].table)
          Kernel::plan(parallel_stream, inputs, sources[p].segment, p,
                       context_->template temporary<std::int32_t>(elements), sources[p].plan);
    }
  }

  [[nodiscard]] int count() const noexcept { return inputs.first_part[inputs.assembly.count]; }

  /// Returns the inputs with the rows of dense parts, whose addresses differ in each pass.
  [[nodiscard]] Inputs read(Staging<Context>& work) const {
    auto all = inputs;
    for (int p = 0; p < count(); ++p)
      if (!sources[p].table) all.parts[p].rows = work.read_real(sources[p].dense.value);
    return all;
  }

  template <kernel::Arrangement arrangement, class... Segment>
  void take(Segments<arrangement, Segment...> const& segments) {
    static_assert(sizeof...(Segment) >= 1 && sizeof...(Segment) <= kernel::Assembly<Space>::max_segments,
                  "Lockstep: FusedEmbedding assembles sequences from 1 to 8 segments");
    inputs.assembly.arrangement = arrangement;
    std::apply([&](auto const&... segment) { (take_segment(segment), ...); }, segments.all);
    compute_layout();
  }

 private:
  template <class... Part>
  void take_segment(Sum<Part...> const& sum) {
    std::apply([&](auto const&... part) { (take_part(part), ...); }, sum.parts);
    inputs.first_part[++inputs.assembly.count] = parts_;
  }
  template <class Part>
  void take_segment(Part const& part) {
    take_segment(nn::sum(part));
  }

  template <class Column>
  void take_part(Column const& column) {
    expect<ShapeError>(own_->ordinal >= 0, [&] {
      return part_name() +
             "is a column of ids, but the layer has no table for it: give the layer a `vocabulary`, or look the ids "
             "up in an nn::Embedding";
    });
    look_up(*own_, column);
  }
  template <class Column>
  void take_part(Embedding::Lookup<Column> const& lookup) {
    look_up(lookup.table, lookup.column);
  }
  void take_part(Sequence<Scalar, Space> const& x) {
    expect<ShapeError>(x.layout.rows == sample_positions_.size(), [&] {
      return part_name() + "has " + std::to_string(x.layout.rows) + " rows and the batch " +
             std::to_string(sample_positions_.size());
    });
    for (int p = 0; p < parts_; ++p)
      expect<ShapeError>(!x.tokens.slot || sources[p].dense.slot != x.tokens.slot, [&] {
        return part_name() + "is the same Sequence as part " + std::to_string(p) + "; pass it once";
      });
    take(x.layout, {.rows = {nullptr, x.tokens.value.extent}}, {.dense = x.tokens, .segment = inputs.assembly.count});
  }

  /// Rejects any other type at compile time and explains what a part may be.
  template <class Column>
  void look_up(Parameter const&, Column const&) {
    static_assert(
        !std::same_as<Column, Column>,
        "Lockstep: FusedEmbedding looks up a column of std::int32_t, std::array<std::int32_t, N> or "
        "std::vector<std::int32_t>; numbers go through nn::Linear; convert strings, enums and optionals to ids when "
        "samples are made, and give an absent one an id of its own");
  }
  template <IdColumn<Space> Column>
  void look_up(Parameter const& table, Column const& column) {
    Source source{.table = &table, .segment = inputs.assembly.count};
    if constexpr (Space::host_accessible && requires { column.plan; }) source.plan = column.plan;
    take(layout_of<Space>(column, sample_positions_),
         {.rows = context_->template value<2>(table),
          .is_table = true,
          .ids = column.values.data,
          .name = table.name.c_str()},
         source);
  }

  void take(SequenceLayout<Space> const& layout, typename Inputs::Part part, Source const& source) {
    auto const segment = inputs.assembly.count;
    auto& known = inputs.assembly.segments[segment];
    expect<ShapeError>(parts_ < Inputs::max_parts, [&] {
      return named_->layer("FusedEmbedding") + ": more than " + std::to_string(Inputs::max_parts) +
             " parts in all segments together";
    });
    expect<ShapeError>(part.rows.extent[1] == width_, [&] {
      return part_name() + (part.is_table ? "(table " + std::string(part.name) + ") " : "") + "has width " +
             std::to_string(part.rows.extent[1]) + " and the layer " + std::to_string(width_) + "; give both one width";
    });
    if (parts_ == inputs.first_part[segment]) known = layout;
    expect<ShapeError>(
        layout.slots == known.slots && layout.is_ragged() == inputs.assembly.segments[0].is_ragged(), [&] {
          return part_name() + "has " + std::to_string(layout.slots) + (layout.is_ragged() ? " ragged" : " padded") +
                 " slots; all parts of a sum need equally many slots, and segments are all padded or all ragged";
        });
    if constexpr (Space::host_accessible && checks(Contract::normal))
      for (Index row = 0; row < layout.rows; ++row)
        expect<DataError>(layout.tokens(row) == known.tokens(row), [&] {
          return part_name() + "has " + std::to_string(layout.tokens(row)) + " tokens in row " + std::to_string(row) +
                 " of the batch, and the parts before it have " + std::to_string(known.tokens(row));
        });
    inputs.parts[parts_] = part;
    sources[parts_++] = source;
  }

  /// Computes the layout of the result.
  void compute_layout() {
    auto& assembly = inputs.assembly;
    auto const& first = assembly.segments[0];
    assembly.layout = first;
    if (assembly.count == 1) return;
    Index slots = 0, length = 0;
    for (int segment = 0; segment < assembly.count; ++segment) {
      slots += assembly.segments[segment].slots;
      length += assembly.segments[segment].length;
    }
    Extents<1> const bounds{assembly.bounds()};
    if (first.is_ragged()) {
      auto const offsets = context_->template temporary<Index>(bounds);
      Kernel::bounds(context_->stream(), assembly, offsets);
      assembly.layout = SequenceLayout<Space>::ragged(slots, length, offsets, sample_positions_);
    } else {
      auto const lengths = context_->template temporary<std::int32_t>(bounds);
      Kernel::bounds(context_->stream(), assembly, lengths);
      assembly.layout = SequenceLayout<Space>::padded(length, lengths, sample_positions_);
    }
  }

  [[nodiscard]] std::string part_name() const {
    auto const segment = inputs.assembly.count;
    return named_->layer("FusedEmbedding") + ": part " + std::to_string(parts_ - inputs.first_part[segment]) +
           " of segment " + std::to_string(segment) + " ";
  }

  Context* context_;
  Parameter const* own_;
  Parameter const* named_;
  TensorView<Index const, 1, Space> sample_positions_;
  Index width_;
  int parts_ = 0;
};

}}}  // namespace lockstep::nn::detail
