// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <tuple>

#include <lockstep/kernel/embedding/fused_embedding.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Owner of the segment plan that every backward of a context builds and uses at once.
inline constexpr char plan_of_rows_by_slot = 0;

/// Returns y[i] = x[slots[i]] for each token i of the layout, and zero in padding: an embedding whose table is an
/// activation. Backward sums the gradients of equal slots as an embedding does.
/// @shape x [rows, width]   @shape slots [layout.slots]   @shape returns [layout.slots, width]
template <class Context>
[[nodiscard]] VariableOf<Context, 2> rows_by_slot(Context& context, VariableOf<Context, 2> x,
                                                  SequenceLayout<typename Context::Space> const& layout,
                                                  TensorView<std::int32_t const, 1, typename Context::Space> slots) {
  using Space = typename Context::Space;
  using Real = typename Context::Real;
  using Kernel = kernel::FusedEmbedding<Space>;
  auto const inputs_with = [layout, slots](TensorView<Real const, 2, Space> rows) {
    typename Kernel::template Inputs<Real> inputs;
    inputs.assembly.segments[0] = inputs.assembly.layout = layout;
    inputs.assembly.count = 1;
    inputs.parts[0] = {.rows = rows, .is_table = true, .ids = slots.data};
    inputs.first_part[1] = 1;
    return inputs;
  };
  auto const y = context.template variable<2>({layout.slots, x.extent(1)});
  {
    Staging work(context);
    Kernel::template forward<Operand<Context>>(context.stream(), inputs_with(work.read_real(x.value)),
                                               work.write(y.value));
  }
  context.on_backward(y, std::tuple{}, [x, y, inputs_with](Context& c) {
    Staging back(c);
    auto const dx = back.gradient_real(x);
    if (!dx) return;
    auto const count = y.extent(0), width = y.extent(1);
    auto const dy = back.read(y.gradient());
    auto const inputs = inputs_with({nullptr, x.value.extent});
    auto const list = back.template temporary<std::int32_t>(Extents<1>{Kernel::plan_elements(count)});
    auto const partial = back.temporary(Extents<2>{Kernel::partial_rows(count), width});
    auto const sum = [&](typename Kernel::Plan& plan) {
      Kernel::plan(c.stream(), inputs, 0, 0, list, plan);
      Kernel::template backward_table<Operand<Context>>(c.stream(), plan, dy, partial, {dx.data, x.value.extent},
                                                        dx.write);
    };
    if constexpr (Space::host_accessible) {
      sum(c.template persistent<typename Kernel::Plan>(&plan_of_rows_by_slot));
    } else {
      typename Kernel::Plan plan;
      sum(plan);
    }
  });
  return y;
}

}}}  // namespace lockstep::nn::detail
