// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <span>
#include <tuple>
#include <type_traits>

#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/tape.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

using Parameters = std::span<Parameter const* const>;

/// Rejects a closure that owns something: the tape runs no destructors.
template <class Function>
constexpr void expect_closure() {
  static_assert(std::is_trivially_destructible_v<Function>,
                "Lockstep: a backward closure holds views and references only");
}

/// An operation of the forward pass as backward needs it: its closure, output and parameters.
template <class Context>
struct Operation {
  typename Tape<Context>::Entry backward;
  GradientSlot<typename Context::Scalar>* output;
  Parameters parameters;

  /// Runs the closure if a consumer has written the output's gradient.
  void run(Context& context) const {
    if (output->data) backward.run(backward.closure, context);
    context.parts().arena.finish_producer(*output);
    for (auto const* p : parameters) context.parameters().gradients().finish_use(*p);
  }
};

/// Pushes an operation onto the context's tape. `type` names its backward closure.
template <class Context>
void record_operation(Context& context, Operation<Context> const& operation, char const* type) {
  auto& tape = context.parts().tape;
  for (auto const* p : operation.parameters)
    if (!tape.recomputing()) context.parameters().gradients().add_use(*p);
  ++operation.output->producers;
  auto* const kept = tape.template make<Operation<Context>>(operation);
  kept->parameters = tape.copy(operation.parameters);
  tape.push({kept, [](void* self, Context& c) { static_cast<Operation<Context>*>(self)->run(c); }});
  if (auto* const tracer = context.parts().active_tracer())
    tracer->registered(tape.size() - 1, type, operation.parameters, tape.recomputing());
}

/// Whether a type is a std::tie of parameters.
template <class Tie>
inline constexpr bool ties_parameters = false;
template <class... Each>
inline constexpr bool ties_parameters<std::tuple<Each...>> =
    (true && ... &&
     std::is_same_v<std::remove_const_t<std::remove_reference_t<Each>>, Parameter>)&&(true && ... &&
                                                                                      std::is_reference_v<Each>);

/// Returns the addresses of the parameters of a std::tie.
template <class... Each>
[[nodiscard]] std::array<Parameter const*, sizeof...(Each)> addresses(std::tuple<Each...> const& parameters) {
  return std::apply([](auto const&... p) { return std::array<Parameter const*, sizeof...(Each)>{&p...}; }, parameters);
}

}}}  // namespace lockstep::nn::detail
