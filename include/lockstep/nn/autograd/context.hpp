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
#include <lockstep/core/persistent_objects.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/kernel/random/step_key.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/detail/activation_memory.hpp>
#include <lockstep/nn/autograd/detail/decoding_cache.hpp>
#include <lockstep/nn/autograd/detail/deprecated_members.hpp>
#include <lockstep/nn/autograd/detail/loss_scale.hpp>
#include <lockstep/nn/autograd/detail/operation.hpp>
#include <lockstep/nn/autograd/detail/staged.hpp>
#include <lockstep/nn/autograd/detail/tape.hpp>
#include <lockstep/nn/autograd/detail/tokens_of.hpp>
#include <lockstep/nn/autograd/detail/tracer.hpp>
#include <lockstep/nn/autograd/detail/unvisited_message.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

template <class Context>
class Staging;

enum class Mode {
  training,    ///< records backward, applies dropout
  evaluation,  ///< records nothing
};

/// State that one replica adds to the shared, immutable model: parameter values, gradients, activations, the tape of
/// backward closures, mode and random key. Not thread-safe: one thread runs forward and backward; kernels use the
/// threads of `stream`. Activations live in an arena: after the largest batch, a step allocates nothing. The arena
/// reuses memory that is no longer read: gradients and values that backward has finished with, and values that layers
/// `release` or `release_until_backward`.
///
/// Activations and their gradients are stored as Scalar: float, double, bfloat16 or float16. Parameters, their
/// gradients and buffers are Real: float for 16-bit activations, otherwise Scalar. Layers compute in Real, through
/// nn::Staging.
template <class Scalar_, class Space_>
class Context : public detail::LossScale<Scalar_>,
                public detail::DecodingCache<Scalar_>,
                public detail::DeprecatedMembers<Context<Scalar_, Space_>>,
                public InReplicaGroup {
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

  /// Binds the values and gradients of `parameters` parameters. All gradients are dense.
  void bind(Real const* values, Real* gradients, std::size_t parameters) {
    values_ = values;
    gradients_.bind(gradients, parameters);
  }
  /// Binds the values and gradients of a layout's parameters; each gradient has the form that its parameter requests.
  void bind(Real const* values, Real* gradients, ParameterLayout const& layout) {
    values_ = values;
    gradients_.bind(gradients, layout);
  }

  /// Binds a copy of the values as Scalar, for matrix products on a device (nn::Staging::factor). Without it, values
  /// are rounded for every product. Only for 16-bit activations.
  void bind_half_precision_values(Scalar const* values) noexcept { half_precision_values_ = values; }

  /// Binds the values of the model's buffers. Only needed for a model with buffers.
  void bind_buffers(Real* buffers) noexcept { buffers_ = buffers; }

  [[nodiscard]] Stream stream() const noexcept { return stream_; }
  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  [[nodiscard]] bool recording() const noexcept { return mode_ == Mode::training; }
  /// Sets the mode for the rest of this forward pass, as nn::Frozen does. Returns the previous mode.
  Mode set_mode(Mode mode) noexcept { return std::exchange(mode_, mode); }

  // ---- for layers: forward

  /// Returns the value of a parameter.
  /// @throws ConfigError if the model's visit does not name the parameter
  template <int Rank>
  [[nodiscard]] TensorView<Real const, Rank, Space> value(Parameter const& p) const {
    expect<ConfigError>(p.offset >= 0, [&] { return detail::unvisited_message(p.shape); });
    TensorView<Real const, Rank, Space> view(values_ + p.offset, {});
    std::copy_n(p.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// Returns a buffer of the model, to read or to write.
  /// @throws ConfigError if the model's visit does not name the buffer
  template <int Rank>
  [[nodiscard]] TensorView<Real, Rank, Space> value(Buffer const& b) const {
    expect<ConfigError>(b.offset >= 0, [&] { return detail::unvisited_message(b.shape); });
    TensorView<Real, Rank, Space> view(buffers_ + b.offset, {});
    std::copy_n(b.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// Returns a new activation, uninitialised.
  template <int Rank>
  [[nodiscard]] Variable<Rank> variable(Extents<Rank> extent) {
    Variable<Rank> v{temporary<Scalar>(extent), nullptr};
    if (!recording()) return v;
    v.slot = tape_.template make<GradientSlot<Scalar>>();
    v.slot->size = v.value.size();
    v.slot->value = v.value.data;
    return v;
  }
  /// Returns memory of this micro-batch without a gradient, uninitialised. May be called in backward closures.
  template <class T, std::size_t Rank>
  [[nodiscard]] TensorView<T, static_cast<int>(Rank), Space> temporary(std::array<Index, Rank> extent) {
    if (tracer_) tracer_.allocated(elements(extent) * Index{sizeof(T)});
    return {memory_.template take<T>(elements(extent)), extent};
  }
  /// Returns a tensor of the batch as a graph input: no gradient flows into it. Converts it if its type is not Scalar.
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
  /// Returns the key of this forward pass's next random operation: equal on all replicas, different for each call. On a
  /// device, the kernels that use the mask make the key.
  [[nodiscard]] std::uint64_t next_key() noexcept requires(Space::host_accessible) { return next_mask(0).key; }
  /// Returns the next operation's key as a mask that drops elements whose 16 random bits are below `dropped`.
  [[nodiscard]] kernel::DropoutMask next_mask(std::uint32_t dropped) noexcept {
    return step_key_.mask(++random_operations_, dropped);
  }

  /// Registers the backward of the layer that made `output` from `parameters` (a std::tie of them). `f(context)` runs
  /// when output's gradient is complete, and never if no consumer wrote one. A closure holds views and references only.
  /// Parameters that the model does not visit are ignored, so a layer can name parameters that an option omits.
  template <int Rank, class... P, class F>
  void on_backward(Variable<Rank> output, std::tuple<P const&...> parameters, F f) {
    static_assert((std::is_same_v<P, Parameter> && ...), "Lockstep: on_backward takes std::tie of nn::Parameters");
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    if (!recording()) return;
    push({tape_.template make<F>(f), [](void* self, Context& context) { (*static_cast<F*>(self))(context); }},
         output.slot, detail::addresses(parameters), typeid(F).name());
  }

  /// Counts uses of p for a closure that names no parameters because it fills their gradients in its own order. Forward
  /// calls `add_use` once for each use; backward calls `finish_use` after each.
  void add_use(Parameter const& p) { gradients_.add_use(p); }
  void finish_use(Parameter const& p) { gradients_.finish_use(p, sink_); }

  /// Marks x's value as dead: neither the rest of this forward pass nor backward reads it, so its memory may be reused.
  /// Call it only if x was made by known layers and passed to no other.
  template <int Rank>
  void release(Variable<Rank> const& x) {
    memory_.release(x.slot ? std::exchange(x.slot->value, nullptr) : x.value.data, x.value.size());
  }
  /// Registers `f(context, view)`, which recomputes x's value, bit-identical, from values that backward keeps in any
  /// case.
  template <int Rank, class F>
  void on_recompute(Variable<Rank> const& x, F f) {
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    if (!recording()) return;
    struct Recompute {
      F f;
      Variable<Rank> x;
    };
    x.slot->recompute =
        tape_.push_recompute({tape_.template make<Recompute>(f, x), [](void* self, Context& context) {
                                auto& closure = *static_cast<Recompute*>(self);
                                closure.f(context, View<Rank>{closure.x.slot->value, closure.x.value.extent});
                              }});
  }
  /// Frees x's value until backward if it can be recomputed; the rest of this forward pass must not read it. Without
  /// recording, the same as `release`. Every backward that reads x must use `saved_value`, as nn::Linear and the norms
  /// do.
  template <int Rank>
  void release_until_backward(Variable<Rank> const& x) {
    if (!recording() || (x.slot && x.slot->recompute >= 0)) release(x);
  }
  /// Returns x's value in a backward closure. Recomputes it if it was released until backward.
  template <int Rank>
  [[nodiscard]] View<Rank> saved_value(Variable<Rank> const& x) {
    if (!x.slot || x.slot->recompute < 0) return x.value;
    if (!x.slot->value) {
      x.slot->value = memory_.template take<Scalar>(x.slot->size);
      tape_.run_recompute(x.slot->recompute, *this);
    }
    return {x.slot->value, x.value.extent};
  }

  /// Returns the result of `f(context)`, a Variable or a Sequence, and frees all other memory that f used. Backward
  /// runs f again, with bit-identical results. `inputs` must name all variables that f passes gradients to. The uses of
  /// f's parameters are counted now. A Sequence's layout must outlive f.
  template <class F, int... Ranks>
  [[nodiscard]] auto recompute(F f, Variable<Ranks> const&... inputs) {
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    auto const start = mark();
    auto const random = random_operations_;
    auto const result = f(*this);
    auto const tokens = detail::tokens_of(result);
    bool const is_input = (false || ... || tokens.is(inputs));
    bool const no_backward = tape_.size() == start.tape.entries || !tokens.slot;
    if (is_input || (recording() && no_backward)) {
      memory_.keep(start.memory);
      return result;
    }
    rewind(start);
    auto const output = variable<static_cast<int>(tokens.value.extent.size())>(tokens.value.extent);
    kernel::Copy<Space>::run(stream_, tokens.value.data, output.value.data, output.value.size());
    if (recording()) record_recompute(f, random, output, inputs...);
    return detail::with_tokens(result, output);
  }
  /// Returns whether `recompute` repeats this forward pass during backward. A layer that counts its passes must skip
  /// it.
  [[nodiscard]] bool recomputing() const noexcept { return recomputing_; }

  /// Returns an object of this context that outlives the micro-batch. The first call for an owner and type makes it,
  /// later calls return it. For storage that an immutable layer fills in each pass without allocating.
  template <class T>
  [[nodiscard]] T& persistent(void const* owner) {
    return persistent_.template of<T>(owner);
  }

  // ---- for layers: backward

  /// Returns the destination of a parameter's gradient: the first writer of a step overwrites, later writers add.
  [[nodiscard]] GradientTarget<Real> gradient(Parameter const& p) { return gradients_.target(p); }
  /// Returns the destination for a writer that touches only some rows of a table and inserts them after writing.
  [[nodiscard]] RowGradientTarget<Real> gradient_by_rows(Parameter const& p) { return gradients_.target_by_rows(p); }
  /// Returns the destination of an activation's gradient; empty if no gradient flows there.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient(Variable<Rank> const& v) {
    this->expect_scaled();
    return memory_.target(v.slot);
  }
  /// Returns the destination for a layer whose backward computes x's gradient elementwise from the gradient of its
  /// output y. If x's gradient is not written yet, it takes the memory of y's gradient, which no other closure reads.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place(Variable<Rank> const& x, Variable<Rank> const& y) {
    if (!x.slot || x.slot->data || x.slot->reserved || x.slot->size != y.slot->size || y.slot->producers > 1)
      return gradient(x);
    x.slot->data = y.slot->data;
    y.slot->memory_reused = true;
    return {x.slot->data, Write::overwrite};
  }
  /// Returns the destination for a layer that computes x's gradient from x's value in place. No other closure may read
  /// or write either.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place_of_value(Variable<Rank> const& x) {
    x.slot->data = std::exchange(x.slot->value, nullptr);
    return {x.slot->data, Write::overwrite};
  }

  // ---- for the code that runs the model
  /// Resets the written flags of gradients: the next writers overwrite.
  void begin_step() { gradients_.begin_step(); }
  /// Frees all activations. `key` seeds this micro-batch's random operations.
  void begin_micro_batch(Mode mode, std::uint64_t key) {
    mode_ = mode;
    step_key_.set(stream_, key);
    restart_micro_batch();
  }
  /// Restarts the current micro-batch, with equal mode and key.
  void restart_micro_batch() {
    stream_.join();
    if (memory_.is_fragmented() || staging_.is_fragmented()) stream_.synchronize();  // rewind frees the pieces
    memory_.rewind(), staging_.rewind(), tape_.clear();
    gradients_.begin_micro_batch();
    random_operations_ = 0;
    recomputing_ = false;
    this->set_in_backward(false);
    if (tracer_) tracer_.begin_pass();
  }
  /// Runs the recorded closures in reverse; calls `sink` for each parameter after its last use. Invalidates the values
  /// of variables: gradients reuse their memory.
  void backward(ReadySink sink) {
    sink_ = tracer_.wrap(sink);
    this->set_in_backward(true);
    tape_.run(0, *this, tracer_), stream_.join();
  }
  /// Records in `timeline` when each operation of the following passes ran; null stops recording. `now(self)` returns
  /// the current time of the space's work. `end_forward` marks the end of the loss.
  void trace(Timeline* timeline, double (*now)(void* self), void* self) { tracer_.start(timeline, {now, self}); }
  void end_forward() { tracer_.end_forward(); }
  /// Returns null unless the pass is traced. Operations without a backward report their end to it, by `ended`.
  [[nodiscard]] detail::Tracer<Space>* tracer() noexcept { return tracer_ ? &tracer_ : nullptr; }
  [[nodiscard]] bool written(std::size_t ordinal) const noexcept { return gradients_.written(ordinal); }
  /// Flags of all parameters by ordinal, to read or to restore when a recorded pass is replayed without the model. A
  /// pass depends on these flags, on the batch, and on the contents and addresses of the space's memory.
  [[nodiscard]] std::span<std::uint8_t const> written() const noexcept { return gradients_.written(); }
  void set_written(std::span<std::uint8_t const> written) noexcept { gradients_.set_written(written); }
  /// Returns a number that changes whenever the activations' memory moves.
  [[nodiscard]] std::uint64_t memory_version() const noexcept { return memory_.allocations() + staging_.allocations(); }
  /// Returns the tables whose gradient is stored by rows, in the arena's order, with the rows that this step touched.
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
    stream_.join();  // forked work uses memory of this pass
    memory_.rewind(mark.memory), tape_.rewind(mark.tape);
  }

  using Operation = detail::Operation<Context, Scalar>;
  /// Pushes an operation onto the tape. `type` names its backward closure.
  void push(typename detail::Tape<Context>::Entry const& backward, GradientSlot<Scalar>* output,
            detail::Parameters parameters, char const* type) {
    for (auto const* p : parameters)
      if (!recomputing_) add_use(*p);
    ++output->producers;
    tape_.push({tape_.template make<Operation>(backward, output, tape_.copy(parameters)),
                [](void* self, Context& context) { context.run(*static_cast<Operation*>(self)); }});
    if (tracer_) tracer_.registered(tape_.size() - 1, type, parameters, recomputing_);
  }
  void run(Operation const& operation) {
    if (operation.output->data) operation.backward.run(operation.backward.closure, *this);
    memory_.finish_producer(*operation.output);
    for (auto const* p : operation.parameters) finish_use(*p);
  }
  /// Registers a closure that runs f again in backward, for the gradient of `output`.
  template <class F, int Rank, int... Ranks>
  void record_recompute(F f, std::uint64_t random, Variable<Rank> const& output, Variable<Ranks> const&... inputs) {
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
                  context.recompute_backward(c.f, c.random, c.output->data);
                  context.memory_.finish_producer(*c.output);
                }});
    if (tracer_) tracer_.registered(tape_.size() - 1, typeid(F).name(), {}, recomputing_);
  }
  /// Runs forward and backward of a recomputed f; `gradient` is its output's gradient.
  template <class F>
  void recompute_backward(F const& f, std::uint64_t random, Scalar* gradient) {
    auto const start = mark();
    random_operations_ = random;
    auto const recomputing_before = std::exchange(recomputing_, true);
    detail::tokens_of(f(*this)).slot->data = gradient;
    recomputing_ = recomputing_before;
    tape_.run(start.tape.entries, *this, tracer_);
    rewind(start);
  }
  void reserve_gradient(GradientSlot<Scalar>* slot) {
    if (slot && !slot->data && !slot->reserved) slot->reserved = memory_.template take<Scalar>(slot->size);
  }

  Stream stream_;
  Real const* values_ = nullptr;
  Scalar const* half_precision_values_ = nullptr;  // values_ as Scalar
  Real* buffers_ = nullptr;
  ParameterGradients<Real, Space> gradients_;
  detail::ActivationMemory<Space> memory_;
  memory::Scratch<memory::DefaultResource<Space>> staging_;  // of the current layer, in Real
  detail::Tape<Context> tape_;                               // closures and slots, read by the host
  detail::Tracer<Space> tracer_;
  std::vector<detail::Staged<Real, Scalar, Space>> staged_;  // of the current layer
  PersistentObjects persistent_;
  ReadySink sink_;
  Mode mode_ = Mode::training;
  kernel::StepKey<Space> step_key_;
  std::uint64_t random_operations_ = 0;
  bool recomputing_ = false;
};

}}}  // namespace lockstep::nn
