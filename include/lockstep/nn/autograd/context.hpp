// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/decoding_cache.hpp>
#include <lockstep/nn/autograd/detail/context_parts.hpp>
#include <lockstep/nn/autograd/detail/deprecated_members.hpp>
#include <lockstep/nn/autograd/detail/operation.hpp>
#include <lockstep/nn/autograd/detail/recomputation.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/parameter_binding.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>
#include <lockstep/nn/autograd/tape.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// State that one replica adds to the shared, immutable model: layers call it in forward and backward. nn::Pass runs
/// passes over it. Not thread-safe: one thread runs forward and backward; kernels use the threads of `stream`. After
/// the largest batch, a step allocates nothing. Memory that is no longer read is reused: gradients and values that
/// backward has finished with, and values that layers `release` or `release_until_backward`.
///
/// Activations and their gradients are stored as Scalar: float, double, bfloat16 or float16. Parameters, their
/// gradients and buffers are Real: float for 16-bit activations, otherwise Scalar. Layers compute in Real, through
/// nn::Staging.
template <class Scalar_, class Space_>
class Context : public detail::DeprecatedMembers<Context<Scalar_, Space_>> {
  static_assert(std::is_same_v<Scalar_, float> || std::is_same_v<Scalar_, double> ||
                    std::is_same_v<Scalar_, bfloat16> || std::is_same_v<Scalar_, float16>,
                "Lockstep: activations are float, double, bfloat16 or float16");

 public:
  using Scalar = Scalar_;                ///< type of activations
  using Real = Accumulate<Scalar>;       ///< type of parameters, gradients of parameters, and sums
  using Space = Space_;                  ///< memory of all tensors
  using Stream = memory::Stream<Space>;  ///< thread pool of the host, or stream of a device
  /// Activation of this context.
  template <int Rank>
  using Variable = nn::Variable<Scalar, Rank, Space>;
  /// View of activations without a gradient.
  template <int Rank>
  using View = TensorView<Scalar, Rank, Space>;

  /// Makes a context in mode training, without parameters.
  explicit Context(Stream stream);
  /// Rejects copies at compile time.
  Context(Context const& other) : Context(other.stream()) {
    static_assert(sizeof(Scalar) == 0,
                  "Lockstep: the context is copied, and layers change it: declare forward(auto& context, ...)");
  }
  /// Takes over the state.
  Context(Context&&) noexcept = default;
  /// Takes over the state.
  Context& operator=(Context&&) noexcept = default;

  /// Returns the stream that layers pass to kernels.
  [[nodiscard]] Stream stream() const noexcept { return parts_.stream; }
  /// Returns the mode of the current pass.
  [[nodiscard]] Mode mode() const noexcept { return parts_.mode; }
  /// Returns whether the pass prepares backward: in training.
  [[nodiscard]] bool recording() const noexcept { return mode() == Mode::training; }

  // ---- tensors

  /// Returns the value of a parameter, or a buffer of the model to read or to write.
  /// @throws ConfigError if the model's visit does not name it; ShapeError if it has another rank
  template <int Rank>
  [[nodiscard]] TensorView<Real const, Rank, Space> value(Parameter const& p) const {
    return parts_.parameters.template value<Rank>(p);
  }
  /// Returns a buffer of the model.   @throws ConfigError if the model's visit does not name it
  template <int Rank>
  [[nodiscard]] TensorView<Real, Rank, Space> value(Buffer const& b) const {
    return parts_.parameters.template value<Rank>(b);
  }
  /// Returns a new activation, uninitialized.
  template <int Rank>
  [[nodiscard]] Variable<Rank> variable(Extents<Rank> extent);
  /// Returns memory of this micro-batch without a gradient, uninitialized. May be called in backward closures.
  template <class Element, std::size_t Rank>
  [[nodiscard]] TensorView<Element, static_cast<int>(Rank), Space> temporary(std::array<Index, Rank> extent);
  /// Returns a tensor of the batch as a graph input: no gradient flows into it. Converts it if its type is not Scalar.
  template <class Element, int Rank>
  [[nodiscard]] Variable<Rank> input(TensorView<Element, Rank, Space> x);
  /// Returns the numbers of a batch's column, as `input(column.values)` does.
  template <class Column>
  requires requires(Column const& column) { column.values.extent; }
  [[nodiscard]] auto input(Column const& column) {
    static_assert(
        !requires { column.lengths; } && !requires { column.offsets; },
        "Lockstep: context.input takes numbers without a length per row, and this column holds sequences: "
        "nn::sequence_of(context, column, batch.positions()) makes a Sequence of it");
    static_assert(
        !requires { column.present; },
        "Lockstep: context.input takes a number for each row, and this column of std::optional lacks some: "
        "fill them in the sample, or pass column.values, where a missing number is 0");
    return input(column.values);
  }

  /// Rejects a whole batch at compile time.
  template <class Batch>
  requires requires(Batch const& batch) { batch.positions(); }
  [[nodiscard]] Variable<2> input(Batch const&) {
    static_assert(sizeof(Batch) == 0,
                  "Lockstep: context.input takes a column of the batch: context.input(batch[&Sample::member].values)");
    return {};
  }
  /// Rejects a constant context at compile time.
  template <class Input>
  [[nodiscard]] Variable<2> input(Input const&) const {
    static_assert(sizeof(Input) == 0,
                  "Lockstep: the context is const, and forward passes change it: declare predict(auto& context, auto "
                  "const& batch)");
    return {};
  }

  // ---- backward

  /// Registers the backward of the layer that made `output` from `parameters` (a std::tie of them). `f(context)` runs
  /// when output's gradient is complete, and never if no consumer wrote one. A closure holds views and references only.
  /// Parameters that the model does not visit are ignored, so a layer can name parameters that an option omits.
  template <int Rank, class Parameters, class Function>
  void on_backward(Variable<Rank> output, Parameters const& parameters, Function f);

  /// Returns the destination of a parameter's gradient: the first writer of a step overwrites, later writers add.
  [[nodiscard]] GradientTarget<Real> gradient(Parameter const& p) { return parameters().gradients().target(p); }
  /// Returns the destination for a writer that touches only some rows of a table and inserts them after writing.
  [[nodiscard]] RowGradientTarget<Real> gradient_by_rows(Parameter const& p) {
    return parameters().gradients().target_by_rows(p);
  }
  /// Returns the destination of an activation's gradient; empty if no gradient flows there.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient(Variable<Rank> const& v) {
    parts_.loss_scale.expect_scaled();
    return parts_.arena.target(v.slot);
  }
  /// Rejects an activation's value at compile time.
  template <class Element, int Rank>
  GradientTarget<Scalar> gradient(TensorView<Element, Rank, Space> const&) {
    static_assert(!std::is_same_v<Element, Element>,
                  "Lockstep: context.gradient takes a Variable, and this is a value: pass x instead of x.value");
    return {};
  }
  /// Returns the destination for a layer whose backward computes x's gradient elementwise from the gradient of its
  /// output y. If x's gradient is not written yet, it takes the memory of y's gradient, which no other closure reads.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place(Variable<Rank> const& x, Variable<Rank> const& y) {
    parts_.loss_scale.expect_scaled();
    return parts_.arena.target_in_place(x.slot, *y.slot);
  }
  /// Returns the destination for a layer that computes x's gradient from x's value in place. No other closure may read
  /// or write either.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place_of_value(Variable<Rank> const& x) {
    return parts_.arena.target_in_place_of_value(*x.slot);
  }

  // ---- memory

  /// Marks x's value as dead: neither the rest of this forward pass nor backward reads it, so its memory may be reused.
  /// Call it only if x was made by known layers and passed to no other.
  template <int Rank>
  void release(Variable<Rank> const& x) {
    parts_.arena.release(x.slot ? std::exchange(x.slot->value, nullptr) : x.value.data, x.value.size());
  }
  /// Registers `f(context, view)`, which recomputes x's value, bit-identical, from values that backward keeps in any
  /// case.
  template <int Rank, class Function>
  void on_recompute(Variable<Rank> const& x, Function f);
  /// Frees x's value until backward if it can be recomputed; the rest of this forward pass must not read it. Without
  /// recording, the same as `release`. Every backward that reads x must use `saved_value`, as nn::Linear and the norms
  /// do.
  template <int Rank>
  void release_until_backward(Variable<Rank> const& x) {
    if (!recording() || (x.slot && x.slot->recompute >= 0)) release(x);
  }
  /// Returns x's value in a backward closure. Recomputes it if it was released until backward.
  template <int Rank>
  [[nodiscard]] View<Rank> saved_value(Variable<Rank> const& x);
  /// Returns the result of `f(context)`, a Variable or a Sequence, and frees all other memory that f used. Backward
  /// runs f again, with bit-identical results. `inputs` must name all variables that f passes gradients to. The uses of
  /// f's parameters are counted now. A Sequence's layout must outlive f.
  template <class Function, int... Ranks>
  [[nodiscard]] auto recompute(Function f, Variable<Ranks> const&... inputs) {
    return detail::recompute(*this, f, inputs...);
  }
  /// Returns whether `recompute` repeats this forward pass during backward. A layer that counts its passes must skip
  /// it.
  [[nodiscard]] bool recomputing() const noexcept { return parts_.tape.recomputing(); }
  /// Returns an object of this context that outlives the micro-batch. The first call for an owner and type makes it,
  /// later calls return it. For storage that an immutable layer fills in each pass without allocating.
  template <class Element>
  [[nodiscard]] Element& persistent(void const* owner) {
    return parts_.persistent.template of<Element>(owner);
  }

  // ---- random numbers, replicas and parts

  /// Returns the key of this forward pass's next random operation: equal on all replicas, different for each call. On a
  /// device, the kernels that use the mask make the key.
  [[nodiscard]] std::uint64_t next_key() noexcept requires(Space::host_accessible) { return next_mask(0).key; }
  /// Returns the next operation's key as a mask that drops elements whose 16 random bits are below `dropped`.
  [[nodiscard]] kernel::DropoutMask next_mask(std::uint32_t dropped) noexcept { return parts_.random.next(dropped); }
  /// Returns the replicas of this step; null if there is no other. Not for evaluation, in which replicas may have
  /// unequal numbers of batches.
  [[nodiscard]] ReplicaGroup* group() const noexcept { return parts_.replicas.group(); }
  /// Returns the state of token-by-token prediction, for layers that need earlier tokens, or whole sequences.
  [[nodiscard]] DecodingCache<Scalar>& cache() noexcept { return parts_.cache; }
  /// Returns the values and gradients of parameters: their memory, which gradients this step has written, and
  /// `gradients().add_use` for closures that fill the gradients of many parameters one at a time.
  [[nodiscard]] ParameterBinding<Scalar, Space>& parameters() noexcept { return parts_.parameters; }
  /// Returns the same to read.
  [[nodiscard]] ParameterBinding<Scalar, Space> const& parameters() const noexcept { return parts_.parameters; }
  /// Returns all parts, for code that runs a model.
  [[nodiscard]] detail::ContextParts<Scalar, Space>& parts() noexcept { return parts_; }
  /// Returns the same to read.
  [[nodiscard]] detail::ContextParts<Scalar, Space> const& parts() const noexcept { return parts_; }

 private:
  detail::ContextParts<Scalar, Space> parts_;
};

/// @cond
// Definitions that doxygen does not match with their declarations.
template <class Scalar, class Space>
Context<Scalar, Space>::Context(Stream stream) : parts_{.stream = stream} {
  if constexpr (std::is_same_v<Scalar, bfloat16> && Space::host_accessible)
    parts_.stream = Stream(stream.pool(), &kernel::bfloat16_products);
}

template <class Scalar, class Space>
template <int Rank>
auto Context<Scalar, Space>::variable(Extents<Rank> extent) -> Variable<Rank> {
  Variable<Rank> v{temporary<Scalar>(extent), nullptr};
  if (!recording()) return v;
  v.slot = parts_.tape.template make<GradientSlot<Scalar>>();
  v.slot->size = v.value.size();
  v.slot->value = v.value.data;
  return v;
}

template <class Scalar, class Space>
template <class Element, std::size_t Rank>
auto Context<Scalar, Space>::temporary(std::array<Index, Rank> extent)
    -> TensorView<Element, static_cast<int>(Rank), Space> {
  if (parts_.tracer) parts_.tracer.allocated(elements(extent) * Index{sizeof(Element)});
  return {parts_.arena.template take<Element>(elements(extent)), extent};
}

template <class Scalar, class Space>
template <class Element, int Rank>
auto Context<Scalar, Space>::input(TensorView<Element, Rank, Space> x) -> Variable<Rank> {
  if constexpr (std::is_same_v<std::remove_const_t<Element>, Scalar>) {
    return {{const_cast<Scalar*>(x.data), x.extent}, nullptr};
  } else {
    auto out = temporary<Scalar>(x.extent);
    Extents<1> const flat{x.size()};
    kernel::Convert<Space>::template run<Scalar, std::remove_const_t<Element>>(stream(), x.reshape(flat),
                                                                               out.reshape(flat));
    return {out, nullptr};
  }
}

template <class Scalar, class Space>
template <int Rank, class Parameters, class Function>
void Context<Scalar, Space>::on_backward(Variable<Rank> output, Parameters const& parameters, Function f) {
  static_assert(detail::ties_parameters<Parameters>,
                "Lockstep: on_backward takes the output, a std::tie of its nn::Parameters, or std::tuple{}, and last "
                "the closure: context.on_backward(y, std::tie(weight_), [=](auto& c) { ... })");
  detail::expect_closure<Function>();
  if constexpr (detail::ties_parameters<Parameters>) {
    static_assert(std::is_invocable_v<Function&, Context&>,
                  "Lockstep: a backward closure takes the context: [=](auto& c) { ... }");
    if (!recording()) return;
    auto const addresses = detail::addresses(parameters);
    auto const run = [](void* self, Context& context) {
      if constexpr (std::is_invocable_v<Function&, Context&>) (*static_cast<Function*>(self))(context);
    };
    detail::record_operation<Context>(*this, {{parts_.tape.template make<Function>(f), run}, output.slot, addresses},
                                      typeid(Function).name());
  }
}

template <class Scalar, class Space>
template <int Rank, class Function>
void Context<Scalar, Space>::on_recompute(Variable<Rank> const& x, Function f) {
  detail::expect_closure<Function>();
  if (!recording()) return;
  struct Recompute {
    Function f;
    Variable<Rank> x;
  };
  auto& tape = parts_.tape;
  x.slot->recompute =
      tape.push_recompute({tape.template make<Recompute>(f, x), [](void* self, Context& context) {
                             auto& closure = *static_cast<Recompute*>(self);
                             closure.f(context, View<Rank>{closure.x.slot->value, closure.x.value.extent});
                           }});
}

template <class Scalar, class Space>
template <int Rank>
auto Context<Scalar, Space>::saved_value(Variable<Rank> const& x) -> View<Rank> {
  if (!x.slot || x.slot->recompute < 0) return x.value;
  if (!x.slot->value) {
    x.slot->value = parts_.arena.template take<Scalar>(x.slot->size);
    parts_.tape.run_recompute(x.slot->recompute, *this);
  }
  return {x.slot->value, x.value.extent};
}
/// @endcond

}}}  // namespace lockstep::nn
