// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/embedding/fused_embedding.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE void FusedEmbedding<HostSpace>::forward(Stream stream, Inputs<Scalar> const& inputs,
                                                        View<Scalar, 2> out) {
  detail::check_embedding(inputs);
  auto const width = out.extent[1];
  auto const* const in = &inputs;
  detail::for_token_runs(
      stream.pool(), inputs.assembly.layout,
      [=](Index row, Index token, Index slot, Index count) {
        with_best_instructions([=](auto vectors) {
          auto* const to = out.data + slot * width;
          detail::embed(vectors, *in, row, token, count, to, width);
          if (in->mask.active())
            detail::apply_dropout(in->mask, static_cast<std::uint64_t>(in->assembly.layout.positions.data[row]),
                                  static_cast<std::uint64_t>(token * width), count * width, to, to);
        });
      },
      [=](Index slot, Index padding) { std::fill_n(out.data + slot * width, padding * width, Scalar{0}); });
}

template <class Scalar>
LOCKSTEP_INLINE Index FusedEmbedding<HostSpace>::scratch(Inputs<Scalar> const& inputs, Index width) noexcept {
  return detail::EmbeddingBackward<Scalar>::scratch(inputs, width);
}

template <class Scalar>
LOCKSTEP_INLINE void FusedEmbedding<HostSpace>::backward(Stream stream, Inputs<Scalar> const& inputs,
                                                         View<Scalar const, 2> dy, View<Scalar, 2> dx,
                                                         Gradients<Scalar> const& targets, Scalar* memory) {
  detail::EmbeddingBackward<Scalar>{inputs, targets, dy.data, dx.data, dy.extent[1], memory}.run(stream.pool());
}

template <class Scalar>
LOCKSTEP_INLINE void FusedEmbedding<HostSpace>::plan(Stream, Inputs<Scalar> const& inputs, int segment, int part,
                                                     View<std::int32_t, 1> list, Plan& plan) {
  auto const& assembly = inputs.assembly;
  auto const& layout = assembly.segments[segment];
  auto const* const ids = inputs.parts[part].ids;
  if (assembly.count == 1 && layout.is_ragged()) return plan.build({ids, static_cast<std::size_t>(layout.slots)});
  std::fill_n(list.data, list.size(), -1);  // a plan ignores negative ids
  Index const stride = assembly.arrangement == Arrangement::interleaved ? assembly.count : 1;
  for (Index row = 0; row < layout.rows; ++row) {
    auto const tokens = layout.tokens(row), from = layout.start(row);
    auto const to = assembly.layout.start(row) + assembly.token(row, {segment, 0});
    for (Index i = 0; i < tokens; ++i) list.data[to + i * stride] = ids[from + i];
  }
  plan.build(list.span());
}

template <class Scalar>
LOCKSTEP_INLINE void FusedEmbedding<HostSpace>::backward_table(Stream stream, Plan const& plan,
                                                               View<Scalar const, 2> dx, View<Scalar, 2> partial,
                                                               View<Scalar, 2> gradient, Write write,
                                                               TouchedRows const& touched, Index stride, Index first) {
  bool const by_rows = touched.words != nullptr;
  if (!by_rows && write == Write::overwrite) detail::zero_absent_rows(stream.pool(), plan, gradient);
  detail::sum_by_id(
      stream.pool(), plan, [=](std::uint32_t entry) { return static_cast<Index>(entry) * stride + first; }, dx.data,
      gradient, partial.data,
      [=](Index row) {
        if (!by_rows) return write;
        return touched.contains(row) ? Write::add : Write::overwrite;
      });
  if (by_rows) touched.insert(plan.rows);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void FusedEmbedding<HostSpace>::forward<float>(Stream stream, Inputs<float> const& inputs, View<float, 2> out);
template void FusedEmbedding<HostSpace>::forward<double>(Stream stream, Inputs<double> const& inputs,
                                                         View<double, 2> out);
template Index FusedEmbedding<HostSpace>::scratch<float>(Inputs<float> const& inputs, Index width) noexcept;
template Index FusedEmbedding<HostSpace>::scratch<double>(Inputs<double> const& inputs, Index width) noexcept;
template void FusedEmbedding<HostSpace>::backward<float>(Stream stream, Inputs<float> const& inputs,
                                                         View<float const, 2> dy, View<float, 2> dx,
                                                         Gradients<float> const& targets, float* memory);
template void FusedEmbedding<HostSpace>::backward<double>(Stream stream, Inputs<double> const& inputs,
                                                          View<double const, 2> dy, View<double, 2> dx,
                                                          Gradients<double> const& targets, double* memory);
template void FusedEmbedding<HostSpace>::plan<float>(Stream, Inputs<float> const& inputs, int segment, int part,
                                                     View<std::int32_t, 1> list, Plan& plan);
template void FusedEmbedding<HostSpace>::plan<double>(Stream, Inputs<double> const& inputs, int segment, int part,
                                                      View<std::int32_t, 1> list, Plan& plan);
template void FusedEmbedding<HostSpace>::backward_table<float>(Stream stream, Plan const& plan, View<float const, 2> dx,
                                                               View<float, 2> partial, View<float, 2> gradient,
                                                               Write write, TouchedRows const& touched, Index stride,
                                                               Index first);
template void FusedEmbedding<HostSpace>::backward_table<double>(Stream stream, Plan const& plan,
                                                                View<double const, 2> dx, View<double, 2> partial,
                                                                View<double, 2> gradient, Write write,
                                                                TouchedRows const& touched, Index stride, Index first);
#endif

}}}  // namespace lockstep::kernel
