// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/core/kept_objects.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/kernel/convert.hpp>
#include <lockstep/kernel/gemm.hpp>
#include <lockstep/kernel/move.hpp>
#include <lockstep/kernel/step_key.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/buffer.hpp>
#include <lockstep/nn/detail/activation_memory.hpp>
#include <lockstep/nn/detail/earlier_tokens.hpp>
#include <lockstep/nn/detail/loss_scale.hpp>
#include <lockstep/nn/detail/not_visited.hpp>
#include <lockstep/nn/detail/operation.hpp>
#include <lockstep/nn/detail/staged.hpp>
#include <lockstep/nn/detail/tape.hpp>
#include <lockstep/nn/detail/tokens_of.hpp>
#include <lockstep/nn/detail/tracer.hpp>
#include <lockstep/nn/parameter.hpp>
#include <lockstep/nn/parameter_gradients.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/nn/replica_group.hpp>
#include <lockstep/nn/variable.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

template <class Context>
class Staging;

enum class Mode {
  training,    ///< records backward, applies dropout
  evaluation,  ///< records nothing
};

/// What one replica adds to the shared, immutable model: parameter values, gradients, activations, the tape of backward
/// closures, mode and random key. Not thread-safe: one thread runs forward and backward; kernels spread over `stream`.
/// Activations live in an arena: once the largest batch has been seen, a step allocates nothing. What nobody reads any
/// more makes room in it: gradients and values that backward is done with, and what layers `release` or `set_aside`.
///
/// Activations and their gradients are stored as Scalar: float, double, bfloat16 or float16. Parameters, their
/// gradients and buffers are Real: float for the last two, else Scalar. Layers compute in Real, by nn::Staging.
template <class Scalar_, class Space_>
class Context : public detail::LossScale<Scalar_>, public detail::EarlierTokens<Scalar_>, public InReplicaGroup {
  static_assert(std::is_same_v<Scalar_, float> || std::is_same_v<Scalar_, double> ||
                    std::is_same_v<Scalar_, bfloat16> || std::is_same_v<Scalar_, float16>,
                "Lockstep: activations are float, double, bfloat16 or float16");

 public:
  using Scalar = Scalar_;
  using Real = Accumulate<Scalar>;
  using Space = Space_;
  using Stream = memory::Stream<Space>;
  template <int Rank>
  using Variable = nn::Variable<Scalar, Rank, Space>;
  template <int Rank>
  using View = TensorView<Scalar, Rank, Space>;

  explicit Context(Stream stream) : stream_(stream) {
    if constexpr (std::is_same_v<Scalar, bfloat16> && Space::host_accessible)
      stream_ = Stream(stream.pool(), &kernel::bfloat16_products);
  }

  /// Says where values and gradients of `parameters` parameters lie. All gradients are dense.
  void bind(Real const* values, Real* gradients, std::size_t parameters) {
    values_ = values;
    gradients_.bind(gradients, parameters);
  }
  /// The same for the parameters of a layout, whose gradients get the form that they ask for.
  void bind(Real const* values, Real* gradients, ParameterLayout const& layout) {
    values_ = values;
    gradients_.bind(gradients, layout);
  }

  /// Says where the values also lie as Scalar, for products on a device: nn::Staging::factor. Without it they are
  /// rounded whenever they are multiplied with.
  void bind_shadow(Scalar const* shadow) noexcept { shadow_ = shadow; }

  /// Says where the values of the model's buffers lie; only needed for a model that has any.
  void bind_buffers(Real* buffers) noexcept { buffers_ = buffers; }

  [[nodiscard]] Stream stream() const noexcept { return stream_; }
  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  [[nodiscard]] bool recording() const noexcept { return mode_ == Mode::training; }
  /// For what follows of this forward pass, as nn::Frozen has it. Returns the mode until now.
  Mode set_mode(Mode mode) noexcept { return std::exchange(mode_, mode); }

  // ---- for layers: forward

  /// @throws ConfigError for one that the model's visit does not name
  template <int Rank>
  [[nodiscard]] TensorView<Real const, Rank, Space> value(Parameter const& p) const {
    expect<ConfigError>(p.offset >= 0, [&] { return detail::not_visited(p.shape); });
    TensorView<Real const, Rank, Space> view(values_ + p.offset, {});
    std::copy_n(p.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// A buffer of the model, to read or to write.
  template <int Rank>
  [[nodiscard]] TensorView<Real, Rank, Space> value(Buffer const& b) const {
    expect<ConfigError>(b.offset >= 0, [&] { return detail::not_visited(b.shape); });
    TensorView<Real, Rank, Space> view(buffers_ + b.offset, {});
    std::copy_n(b.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// A new activation, uninitialised.
  template <int Rank>
  [[nodiscard]] Variable<Rank> variable(Extents<Rank> extent) {
    Variable<Rank> v{temporary<Scalar>(extent), nullptr};
    if (!recording()) return v;
    v.slot = tape_.template make<GradientSlot<Scalar>>();
    v.slot->size = v.value.size();
    v.slot->value = v.value.data;
    return v;
  }
  /// Memory for this micro-batch that needs no gradient, uninitialised. Also for backward closures.
  template <class T, std::size_t Rank>
  [[nodiscard]] TensorView<T, static_cast<int>(Rank), Space> temporary(std::array<Index, Rank> extent) {
    if (tracer_) tracer_.took(elements(extent) * Index{sizeof(T)});
    return {memory_.template take<T>(elements(extent)), extent};
  }
  /// A tensor of the batch enters the graph: no gradient flows into it. Converted when its type is not the context's.
  template <class T, int Rank>
  [[nodiscard]] Variable<Rank> input(TensorView<T, Rank, Space> x) {
    if constexpr (std::is_same_v<std::remove_const_t<T>, Scalar>) {
      return {{const_cast<Scalar*>(x.data), x.extent}, nullptr};
    } else {
      auto out = temporary<Scalar>(x.extent);
      Extents<1> const flat{x.size()};
      kernel::Convert<Space>::template run<Scalar, std::remove_const_t<T>>(stream_, x.reshape(flat), out.reshape(flat));
      return {out, nullptr};
    }
  }
  /// A key for the next random operation of this forward pass: the same for every replica, another for every call. On a
  /// device the key is made there, by whoever uses a mask.
  [[nodiscard]] std::uint64_t next_key() noexcept requires(Space::host_accessible) { return next_mask(0).key; }
  /// The same as a mask that drops an element whose 16 bits are below `dropped`.
  [[nodiscard]] kernel::DropoutMask next_mask(std::uint32_t dropped) noexcept {
    return step_key_.mask(++random_operations_, dropped);
  }

  /// Registers the backward of the layer that made `output` from `parameters` (a std::tie of them): `f(context)` runs
  /// when output's gradient is complete, and not at all when nobody used it. A closure holds views and references only.
  /// A parameter that the model does not visit counts as absent: so a layer can name those that an option leaves out.
  template <int Rank, class... P, class F>
  void on_backward(Variable<Rank> output, std::tuple<P const&...> parameters, F f) {
    static_assert((std::is_same_v<P, Parameter> && ...), "Lockstep: on_backward takes std::tie of nn::Parameters");
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    if (!recording()) return;
    push({tape_.template make<F>(f), [](void* self, Context& context) { (*static_cast<F*>(self))(context); }},
         output.slot, detail::addresses(parameters), typeid(F).name());
  }

  /// For a closure that names no parameters, as it fills their gradients in an order of its own: forward expects one
  /// use of p or several, and backward tells when one is over.
  void expect_use(Parameter const& p) { gradients_.expect_use(p); }
  void used(Parameter const& p) { gradients_.used(p, sink_); }

  /// Nobody reads x's value any more, neither what follows of this forward pass nor backward: its memory is for what
  /// comes next. For a layer that made x of layers that it knows, and hands it to nobody else.
  template <int Rank>
  void release(Variable<Rank> const& x) {
    memory_.give_back(x.slot ? std::exchange(x.slot->value, nullptr) : x.value.data, x.value.size());
  }
  /// Says that `f(context, view)` writes x's value once more, the same to the bit, of what backward reads in any case.
  template <int Rank, class F>
  void can_make_again(Variable<Rank> const& x, F f) {
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    if (!recording()) return;
    struct Maker {
      F f;
      Variable<Rank> x;
    };
    x.slot->maker = tape_.push_maker({tape_.template make<Maker>(f, x), [](void* self, Context& context) {
                                        auto& maker = *static_cast<Maker*>(self);
                                        maker.f(context, View<Rank>{maker.x.slot->value, maker.x.value.extent});
                                      }});
  }
  /// What follows of this forward pass does not read x's value: if it can be made again, its memory is for what comes
  /// next. As `release`, where all that backward runs reads it by `value_of`, as nn::Linear and the norms do.
  template <int Rank>
  void set_aside(Variable<Rank> const& x) {
    if (!recording() || (x.slot && x.slot->maker >= 0)) release(x);
  }
  /// In a backward closure: x's value, made again if it was set aside.
  template <int Rank>
  [[nodiscard]] View<Rank> value_of(Variable<Rank> const& x) {
    if (!x.slot || x.slot->maker < 0) return x.value;
    if (!x.slot->value) {
      x.slot->value = memory_.template take<Scalar>(x.slot->size);
      tape_.run_maker(x.slot->maker, *this);
    }
    return {x.slot->value, x.value.extent};
  }

  /// What `f(context)` returns, a Variable or a Sequence, and nothing else that it made: that memory is given back at
  /// once, and f runs again, alike to the bit, when backward gets there. `inputs` are all variables that f takes
  /// gradients to. The parameters that it uses are counted now. A Sequence's layout must outlive f.
  template <class F, int... Ranks>
  [[nodiscard]] auto recompute(F f, Variable<Ranks> const&... inputs) {
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    auto const start = mark();
    auto const random = random_operations_;
    auto const made = f(*this);
    auto const made_tokens = detail::tokens_of(made);
    bool const is_input = (false || ... || made_tokens.is(inputs));
    bool const no_backward = tape_.size() == start.tape.entries || !made_tokens.slot;
    if (is_input || (recording() && no_backward)) {
      memory_.keep(start.memory);
      return made;
    }
    rewind(start);
    auto const output = variable<static_cast<int>(made_tokens.value.extent.size())>(made_tokens.value.extent);
    kernel::Move<Space>::run(stream_, made_tokens.value.data, output.value.data, output.value.size());
    if (recording()) put_off(f, random, output, inputs...);
    return detail::with_tokens(made, output);
  }
  /// Whether this forward pass is one that `recompute` repeats: a layer that counts its passes counts it once.
  [[nodiscard]] bool replaying() const noexcept { return replaying_; }

  /// An object of this context that outlives the micro-batch: made at the first call for this owner and type, found
  /// again at later ones. For storage that a layer, itself immutable, fills anew each time without allocating.
  template <class T>
  [[nodiscard]] T& kept(void const* owner) {
    return kept_.template of<T>(owner);
  }

  // ---- for layers: backward

  /// The target of a parameter's gradient: the first writer of a step overwrites, later ones add.
  [[nodiscard]] GradientTarget<Real> gradient(Parameter const& p) { return gradients_.target(p); }
  /// The same for a table of which the writer touches only some rows. The writer enters them when it has written them.
  [[nodiscard]] RowGradientTarget<Real> gradient_by_rows(Parameter const& p) { return gradients_.target_by_rows(p); }
  /// The target of an activation's gradient; empty when no gradient flows there.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient(Variable<Rank> const& v) {
    this->expect_scaled();
    return memory_.target(v.slot);
  }
  /// The same for a layer whose backward makes x's gradient from that of its output y element by element: if nothing
  /// was written to it yet, it takes the memory of y's, which nobody else reads any more.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place(Variable<Rank> const& x, Variable<Rank> const& y) {
    if (!x.slot || x.slot->data || x.slot->reserved || x.slot->size != y.slot->size || y.slot->producers > 1)
      return gradient(x);
    x.slot->data = y.slot->data;
    y.slot->passed_on = true;
    return {x.slot->data, Write::overwrite};
  }
  /// The same where x's value is what its gradient is made of, and nobody else reads or writes either.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_value(Variable<Rank> const& x) {
    x.slot->data = std::exchange(x.slot->value, nullptr);
    return {x.slot->data, Write::overwrite};
  }

  // ---- for who runs the model
  /// Forgets which gradients were written: the next writers overwrite.
  void begin_step() { gradients_.begin_step(); }
  /// Gives all activations back. `key` seeds this micro-batch's random operations.
  void begin_micro_batch(Mode mode, std::uint64_t key) {
    mode_ = mode;
    step_key_.set(stream_, key);
    begin_micro_batch_again();
  }
  /// The same micro-batch once more, from its start.
  void begin_micro_batch_again() {
    stream_.join();
    if (memory_.in_pieces() || staging_.in_pieces()) stream_.synchronize();  // the pieces are given back, once unused
    memory_.rewind(), staging_.rewind(), tape_.clear();
    gradients_.begin_micro_batch();
    random_operations_ = 0;
    replaying_ = false;
    this->in_backward(false);
    if (tracer_) tracer_.begin_pass();
  }
  /// Runs the recorded closures in reverse; `sink` hears of each parameter after its last use. Afterwards the values of
  /// variables are gone: gradients have taken their memory.
  void backward(ReadySink sink) {
    sink_ = tracer_.around(sink);
    this->in_backward(true);
    tape_.run(0, *this, tracer_), stream_.join();
  }
  /// Writes down in `timeline` when each operation of the passes begun from here on ran; a null one ends it.
  /// `now(self)` is a moment of the space's work. The loss ends where `end_forward` says.
  void trace(Timeline* timeline, double (*now)(void* self), void* self) { tracer_.start(timeline, {now, self}); }
  void end_forward() { tracer_.end_forward(); }
  /// Null unless the pass is traced; then `ended` tells of an operation that registers no backward.
  [[nodiscard]] detail::Tracer<Space>* tracer() noexcept { return tracer_ ? &tracer_ : nullptr; }
  [[nodiscard]] bool written(std::size_t ordinal) const noexcept { return gradients_.written(ordinal); }
  /// The same of all parameters; and to have it so, for who does a pass again without running the model. A pass depends
  /// on it, on the batch, on what lies in the space's memory, and on where.
  [[nodiscard]] std::span<std::uint8_t const> written() const noexcept { return gradients_.written(); }
  void set_written(std::span<std::uint8_t const> written) noexcept { gradients_.set_written(written); }
  /// Another number after activations got other memory.
  [[nodiscard]] std::uint64_t memory_moves() const noexcept { return memory_.allocations() + staging_.allocations(); }
  /// The parameters whose gradient goes by rows, in the arena's order, and which rows this step has touched.
  [[nodiscard]] std::span<kernel::TouchedRows const> touched() const noexcept { return gradients_.touched(); }
  [[nodiscard]] std::size_t activation_bytes() const noexcept {
    return memory_.capacity_bytes() + staging_.capacity_bytes();
  }

 private:
  friend class Staging<Context>;

  struct Mark {
    typename detail::ActivationMemory<Space>::Mark memory;
    typename detail::Tape<Context>::Mark tape;
  };
  [[nodiscard]] Mark mark() noexcept { return {memory_.mark(), tape_.mark()}; }
  void rewind(Mark const& mark) {
    stream_.join();  // what goes on beside has memory of this pass
    memory_.rewind(mark.memory), tape_.rewind(mark.tape);
  }

  using Operation = detail::Operation<Context, Scalar>;
  /// An operation that a closure of the type is backward of.
  void push(typename detail::Tape<Context>::Entry const& backward, GradientSlot<Scalar>* output,
            detail::Parameters parameters, char const* type) {
    for (auto const* p : parameters)
      if (!replaying_) expect_use(*p);
    ++output->producers;
    tape_.push({tape_.template make<Operation>(backward, output, tape_.copy(parameters)),
                [](void* self, Context& context) { context.run(*static_cast<Operation*>(self)); }});
    if (tracer_) tracer_.registered(tape_.size() - 1, type, parameters, replaying_);
  }
  void run(Operation const& operation) {
    if (operation.output->data) operation.backward.run(operation.backward.closure, *this);
    memory_.give_back(*operation.output);
    for (auto const* p : operation.parameters) used(*p);
  }
  /// Has backward run f again, for the gradient of `output`.
  template <class F, int Rank, int... Ranks>
  void put_off(F f, std::uint64_t random, Variable<Rank> const& output, Variable<Ranks> const&... inputs) {
    struct Closure {
      F f;
      std::uint64_t random;
      GradientSlot<Scalar>* output;
      std::tuple<Variable<Ranks>...> inputs;
    };
    auto* closure = tape_.template make<Closure>(f, random, output.slot, std::tuple<Variable<Ranks>...>{inputs...});
    ++output.slot->producers;
    tape_.push({closure, [](void* self, Context& context) {
                  auto& c = *static_cast<Closure*>(self);
                  std::apply([&](auto const&... x) { (context.reserve_gradient(x.slot), ...); }, c.inputs);
                  context.replay(c.f, c.random, c.output->data);
                  context.memory_.give_back(*c.output);
                }});
    if (tracer_) tracer_.registered(tape_.size() - 1, typeid(F).name(), {}, replaying_);
  }
  /// Forward and backward of what was put off; `gradient` is that of its output.
  template <class F>
  void replay(F const& f, std::uint64_t random, Scalar* gradient) {
    auto const start = mark();
    random_operations_ = random;
    auto const replaying_before = std::exchange(replaying_, true);
    detail::tokens_of(f(*this)).slot->data = gradient;
    replaying_ = replaying_before;
    tape_.run(start.tape.entries, *this, tracer_);
    rewind(start);
  }
  void reserve_gradient(GradientSlot<Scalar>* slot) {
    if (slot && !slot->data && !slot->reserved) slot->reserved = memory_.template take<Scalar>(slot->size);
  }

  Stream stream_;
  Real const* values_ = nullptr;
  Scalar const* shadow_ = nullptr;  // of values_
  Real* buffers_ = nullptr;
  ParameterGradients<Real, Space> gradients_;
  detail::ActivationMemory<Space> memory_;
  memory::Scratch<memory::DefaultResource<Space>> staging_;  // of the layer at hand, in Real
  detail::Tape<Context> tape_;                               // closures and slots: the host reads them
  detail::Tracer<Space> tracer_;
  std::vector<detail::Staged<Real, Scalar, Space>> staged_;  // of the layer at hand
  KeptObjects kept_;
  ReadySink sink_;
  Mode mode_ = Mode::training;
  kernel::StepKey<Space> step_key_;
  std::uint64_t random_operations_ = 0;
  bool replaying_ = false;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
