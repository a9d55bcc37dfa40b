// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_INLINE FusedEmbedding::FusedEmbedding(Options const& options)
    : token_(table(options.vocabulary, options.width, options.token_gradient)),
      position_(table(options.length, options.width, GradientForm::dense)),
      type_(table(options.types, options.width, GradientForm::dense)),
      weight_{{options.width}, Initializer::constant(1)},
      bias_{{options.width}, Initializer::constant(0)},
      options_(options),
      dropout_(options.dropout) {
  for (auto const& [name, size, min] : {std::tuple{"vocabulary", options.vocabulary, 0},
                                        {"length", options.length, 0},
                                        {"width", options.width, 1},
                                        {"types", options.types, 0}})
    expect<ConfigError>(size >= min, [&, n = name, s = size, m = min] {
      return "FusedEmbedding: " + std::string(n) + " is " + std::to_string(s) + "; it must be at least " +
             std::to_string(m);
    });
  expect<ConfigError>(options.epsilon > 0, [&] {
    return "FusedEmbedding: epsilon is " + shortest(options.epsilon) + "; it must be above 0";
  });
}

LOCKSTEP_INLINE Parameter FusedEmbedding::table(Index rows, Index width, GradientForm gradient) {
  return {.shape = {rows, width}, .initializer = Initializer::normal(0.02), .gradient_form = gradient};
}

LOCKSTEP_INLINE Parameter const& FusedEmbedding::named() const noexcept {
  if (options_.vocabulary > 0) return token_;
  return options_.length > 0 ? position_ : type_;
}

template <class Context, class Inputs>
LOCKSTEP_INLINE void FusedEmbedding::add_own_parameters(Context& context, Inputs& inputs) const {
  using Real = typename Context::Real;
  inputs.scale = static_cast<Real>(options_.scale);
  inputs.position_unit = options_.position_unit;
  inputs.norm = options_.norm;
  inputs.epsilon = static_cast<Real>(options_.epsilon);
  inputs.mask = dropout_.mask(context);
  if (options_.length > 0) inputs.position = context.template value<2>(position_);
  inputs.first_position = context.cache().cached_lengths(inputs.assembly.layout.rows);
  if (inputs.assembly.count > 1) context.cache().expect_whole_sequences("FusedEmbedding of several segments");
  if (options_.types > 0) inputs.type = context.template value<2>(type_);
  if (options_.norm != Norm::none) inputs.weight = context.template value<1>(weight_);
  if (options_.norm == Norm::layer) inputs.bias = context.template value<1>(bias_);
}

template <class Context, class Parts>
LOCKSTEP_INLINE void FusedEmbedding::backward(Context& c, Parts const& parts, VariableOf<Context, 2> out) const {
  using Real = typename Context::Real;
  using Kernel = typename Parts::Kernel;
  Staging work(c);
  auto const inputs = parts.read(work);
  typename Kernel::template Gradients<Real> targets;
  auto const own = [&](Parameter const& p, bool used) -> decltype(targets.position) {
    if (!used) return {};
    auto const [data, write] = c.gradient(p);
    return {data, write};
  };
  targets.position = own(position_, options_.length > 0);
  targets.type = own(type_, options_.types > 0);
  targets.weight = own(weight_, options_.norm != Norm::none);
  targets.bias = own(bias_, options_.norm == Norm::layer);
  for (int p = 0; p < parts.count(); ++p) {
    if (parts.sources[p].table) continue;
    auto const [data, write] = work.gradient_real(parts.sources[p].dense);
    targets.dense[p] = {data, write};
  }
  TensorView<Real, 2, typename Context::Space> dx{nullptr, out.value.extent};
  if (!inputs.is_plain_sum()) dx = c.template temporary<Real>(out.value.extent);
  auto const memory = c.template temporary<Real>(Extents<1>{Kernel::scratch(inputs, width())});
  auto const dy = work.read(out.gradient());
  Kernel::template backward<Operand<Context>>(c.stream(), inputs, dy, dx, targets, memory.data);
  auto const tables = [&]<class Element>(TensorView<Element const, 2, typename Context::Space> sum) {
    for (int p = 0; p < parts.count(); ++p)
      if (parts.sources[p].table) backward_table<Element>(c, parts, p, sum);
  };
  if (inputs.is_plain_sum())
    tables(dy);
  else
    tables(TensorView<Real const, 2, typename Context::Space>(dx));
}

template <class Element, class Context, class Parts>
LOCKSTEP_INLINE void FusedEmbedding::backward_table(Context& c, Parts const& parts, int p,
                                                    TensorView<Element const, 2, typename Context::Space> dx) const {
  using Real = typename Context::Real;
  using Kernel = typename Parts::Kernel;
  auto const& source = parts.sources[p];
  auto const& assembly = parts.inputs.assembly;
  auto const slots = assembly.layout.slots;
  auto const gradient = c.gradient_by_rows(*source.table);
  auto const partial = c.template temporary<Real>(Extents<2>{Kernel::partial_rows(slots), width()});
  auto const sum = [&](typename Kernel::Plan const& plan, Index stride, Index first) {
    Kernel::template backward_table<Element>(c.stream(), plan, dx, partial,
                                             {gradient.data, parts.inputs.parts[p].rows.extent}, gradient.write,
                                             gradient.touched, stride, first);
  };
  if constexpr (!Context::Space::host_accessible) {
    c.stream().join();
    sum(source.plan, 1, 0);
  } else {
    bool const even = assembly.arrangement == kernel::Arrangement::interleaved &&
                      assembly.segments[source.segment].slots * assembly.count == slots;
    if (source.plan && (assembly.count == 1 || even)) return sum(*source.plan, assembly.count, source.segment);
    auto& plan = c.template persistent<typename Kernel::Plan>(this);
    auto const list = c.template temporary<std::int32_t>(Extents<1>{Kernel::plan_elements(slots)});
    Kernel::plan(c.stream(), parts.inputs, source.segment, p, list, plan);
    sum(plan, 1, 0);
  }
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_FUSED_EMBEDDING(Number, Space)                                                                  \
  template void FusedEmbedding::add_own_parameters(                                                              \
      Context<Number, Space>& context, decltype(detail::EmbeddingParts<Context<Number, Space>>::inputs)& inputs) \
      const;                                                                                                     \
  template void FusedEmbedding::backward(Context<Number, Space>& c,                                              \
                                         detail::EmbeddingParts<Context<Number, Space>> const& parts,            \
                                         VariableOf<Context<Number, Space>, 2> out) const
#endif

}}}  // namespace lockstep::nn
