// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <tuple>
#include <typeinfo>

#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/nn/autograd/activation_arena.hpp>
#include <lockstep/nn/autograd/detail/operation.hpp>
#include <lockstep/nn/autograd/detail/tokens_of.hpp>
#include <lockstep/nn/autograd/tape.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// A state of a context's arena and tape to rewind to.
template <class Context>
class ContextMark {
 public:
  explicit ContextMark(Context& context) noexcept
      : arena_(context.parts().arena.mark()), tape_(context.parts().tape.mark()) {}

  /// Returns the number of the tape's entries at the mark.
  [[nodiscard]] std::size_t entries() const noexcept { return tape_.entries; }
  /// Ends the mark; memory taken since stays.
  void keep(Context& context) const noexcept { context.parts().arena.keep(arena_); }
  /// Frees what was taken and pushed since the mark.
  void rewind(Context& context) const {
    context.stream().join();  // forked work uses memory of this pass
    context.parts().arena.rewind(arena_);
    context.parts().tape.rewind(tape_);
  }

 private:
  typename ActivationArena<typename Context::Space>::Mark arena_;
  typename Tape<Context>::Mark tape_;
};

/// Runs forward and backward of a recomputed f, whose random operations follow the first `random` ones. `gradient` is
/// its output's gradient.
template <class Context, class Function>
void recompute_backward(Context& context, Function const& f, std::uint64_t random, typename Context::Scalar* gradient) {
  ContextMark<Context> const start(context);
  context.parts().random.rewind(random);
  bool const before = context.parts().tape.set_recomputing(true);
  tokens_of(f(context)).slot->data = gradient;
  context.parts().tape.set_recomputing(before);
  context.parts().tape.run(start.entries(), context, context.parts().active_tracer());
  start.rewind(context);
}

/// Registers a closure that runs f again in backward, for the gradient of `output`.
template <class Context, class Function, class Output, class... Inputs>
void record_recompute(Context& context, Function f, std::uint64_t random, Output const& output,
                      Inputs const&... inputs) {
  struct Closure {
    Function f;
    std::uint64_t random;
    GradientSlot<typename Context::Scalar>* output;
    std::tuple<Inputs...> inputs;
  };
  auto& tape = context.parts().tape;
  auto* closure = tape.template make<Closure>(f, random, output.slot, std::tuple<Inputs...>{inputs...});
  ++output.slot->producers;
  tape.push({closure, [](void* self, Context& c) {
               auto& here = *static_cast<Closure*>(self);
               std::apply([&](auto const&... x) { (c.parts().arena.reserve_gradient(x.slot), ...); }, here.inputs);
               recompute_backward(c, here.f, here.random, here.output->data);
               c.parts().arena.finish_producer(*here.output);
             }});
  if (auto* const tracer = context.parts().active_tracer())
    tracer->registered(tape.size() - 1, typeid(Function).name(), {}, tape.recomputing());
}

/// Implements Context::recompute.
template <class Context, class Function, class... Inputs>
[[nodiscard]] auto recompute(Context& context, Function f, Inputs const&... inputs) {
  expect_closure<Function>();
  ContextMark<Context> const start(context);
  auto const random = context.parts().random.operations();
  auto const result = f(context);
  auto const tokens = tokens_of(result);
  bool const is_input = (false || ... || tokens.is(inputs));
  bool const no_backward = context.parts().tape.size() == start.entries() || !tokens.slot;
  if (is_input || (context.recording() && no_backward)) {
    start.keep(context);
    return result;
  }
  start.rewind(context);
  auto const output = context.template variable<static_cast<int>(tokens.value.extent.size())>(tokens.value.extent);
  kernel::Copy<typename Context::Space>::run(context.stream(), tokens.value.data, output.value.data,
                                             output.value.size());
  if (context.recording()) record_recompute(context, f, random, output, inputs...);
  return with_tokens(result, output);
}

}}}  // namespace lockstep::nn::detail
