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
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/activation_arena.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/decoding_cache.hpp>
#include <lockstep/nn/autograd/detail/deprecated_members.hpp>
#include <lockstep/nn/autograd/detail/loss_scale.hpp>
#include <lockstep/nn/autograd/detail/operation.hpp>
#include <lockstep/nn/autograd/detail/recomputation.hpp>
#include <lockstep/nn/autograd/detail/staged.hpp>
#include <lockstep/nn/autograd/detail/tracer.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/parameter_binding.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/random_keys.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>
#include <lockstep/nn/autograd/tape.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

enum class Mode {
  training,    ///< records backward, applies dropout
  evaluation,  ///< records nothing
};

/// State that one replica adds to the shared, immutable model. Layers call it in forward and backward. It joins parts
/// with one job each: ParameterBinding (values and gradients), ActivationArena, Tape (backward closures), RandomKeys,
/// DecodingCache and InReplicaGroup. Not thread-safe: one thread runs forward and backward; kernels use the threads of
/// `stream`. After the largest batch, a step allocates nothing. The arena reuses memory that is no longer read:
/// gradients and values that backward has finished with, and values that layers `release` or `release_until_backward`.
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

  [[nodiscard]] Stream stream() const noexcept { return stream_; }
  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  [[nodiscard]] bool recording() const noexcept { return mode_ == Mode::training; }
  /// Sets the mode for the rest of this forward pass, as nn::Frozen does. Returns the previous mode.
  Mode set_mode(Mode mode) noexcept { return std::exchange(mode_, mode); }

  // ---- for layers: forward

  /// Returns the value of a parameter, or a buffer of the model to read or to write.
  /// @throws ConfigError if the model's visit does not name it
  template <int Rank>
  [[nodiscard]] TensorView<Real const, Rank, Space> value(Parameter const& p) const {
    return parameters_.template value<Rank>(p);
  }
  template <int Rank>
  [[nodiscard]] TensorView<Real, Rank, Space> value(Buffer const& b) const {
    return parameters_.template value<Rank>(b);
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
  template <class Element, std::size_t Rank>
  [[nodiscard]] TensorView<Element, static_cast<int>(Rank), Space> temporary(std::array<Index, Rank> extent) {
    if (tracer_) tracer_.allocated(elements(extent) * Index{sizeof(Element)});
    return {arena_.template take<Element>(elements(extent)), extent};
  }
  /// Returns a tensor of the batch as a graph input: no gradient flows into it. Converts it if its type is not Scalar.
  template <class Element, int Rank>
  [[nodiscard]] Variable<Rank> input(TensorView<Element, Rank, Space> x) {
    if constexpr (std::is_same_v<std::remove_const_t<Element>, Scalar>) {
      return {{const_cast<Scalar*>(x.data), x.extent}, nullptr};
    } else {
      auto out = temporary<Scalar>(x.extent);
      Extents<1> const flat{x.size()};
      kernel::Convert<Space>::template run<Scalar, std::remove_const_t<Element>>(stream_, x.reshape(flat),
                                                                                 out.reshape(flat));
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
  [[nodiscard]] kernel::DropoutMask next_mask(std::uint32_t dropped) noexcept { return random_.next(dropped); }

  /// Registers the backward of the layer that made `output` from `parameters` (a std::tie of them). `f(context)` runs
  /// when output's gradient is complete, and never if no consumer wrote one. A closure holds views and references only.
  /// Parameters that the model does not visit are ignored, so a layer can name parameters that an option omits.
  template <int Rank, class... Parameters, class Function>
  void on_backward(Variable<Rank> output, std::tuple<Parameters const&...> parameters, Function f) {
    static_assert((std::is_same_v<Parameters, Parameter> && ...),
                  "Lockstep: on_backward takes std::tie of nn::Parameters");
    static_assert(std::is_trivially_destructible_v<Function>,
                  "Lockstep: a backward closure holds views and references only");
    if (!recording()) return;
    auto const addresses = detail::addresses(parameters);
    detail::record_operation<Context>(*this,
                                      {{tape_.template make<Function>(f),
                                        [](void* self, Context& context) { (*static_cast<Function*>(self))(context); }},
                                       output.slot,
                                       addresses},
                                      typeid(Function).name());
  }

  /// Counts uses of p for a closure that names no parameters because it fills their gradients in its own order. Forward
  /// calls `add_use` once for each use; backward calls `finish_use` after each.
  void add_use(Parameter const& p) { parameters_.gradients().add_use(p); }
  void finish_use(Parameter const& p) { parameters_.gradients().finish_use(p, sink_); }

  /// Marks x's value as dead: neither the rest of this forward pass nor backward reads it, so its memory may be reused.
  /// Call it only if x was made by known layers and passed to no other.
  template <int Rank>
  void release(Variable<Rank> const& x) {
    arena_.release(x.slot ? std::exchange(x.slot->value, nullptr) : x.value.data, x.value.size());
  }
  /// Registers `f(context, view)`, which recomputes x's value, bit-identical, from values that backward keeps in any
  /// case.
  template <int Rank, class Function>
  void on_recompute(Variable<Rank> const& x, Function f) {
    static_assert(std::is_trivially_destructible_v<Function>,
                  "Lockstep: a backward closure holds views and references only");
    if (!recording()) return;
    struct Recompute {
      Function f;
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
      x.slot->value = arena_.template take<Scalar>(x.slot->size);
      tape_.run_recompute(x.slot->recompute, *this);
    }
    return {x.slot->value, x.value.extent};
  }

  /// Returns the result of `f(context)`, a Variable or a Sequence, and frees all other memory that f used. Backward
  /// runs f again, with bit-identical results. `inputs` must name all variables that f passes gradients to. The uses of
  /// f's parameters are counted now. A Sequence's layout must outlive f.
  template <class Function, int... Ranks>
  [[nodiscard]] auto recompute(Function f, Variable<Ranks> const&... inputs) {
    static_assert(std::is_trivially_destructible_v<Function>,
                  "Lockstep: a backward closure holds views and references only");
    return detail::recompute(*this, f, inputs...);
  }
  /// Returns whether `recompute` repeats this forward pass during backward. A layer that counts its passes must skip
  /// it.
  [[nodiscard]] bool recomputing() const noexcept { return tape_.recomputing(); }

  /// Returns the replicas of this step; null if there is no other. Not for evaluation, in which replicas may have
  /// unequal numbers of batches.
  [[nodiscard]] ReplicaGroup* group() const noexcept { return replicas_.group(); }
  /// Returns the number of tokens of each sequence in earlier passes of token-by-token prediction.
  [[nodiscard]] Index cached_tokens() const noexcept { return cache_.cached_tokens(); }
  /// Rejects token-by-token prediction for a layer that needs whole sequences.
  /// @throws ConfigError in such a pass, and in the pass that begins the sequences
  void expect_whole_sequences(char const* who) const { cache_.expect_whole_sequences(who); }

  /// Returns an object of this context that outlives the micro-batch. The first call for an owner and type makes it,
  /// later calls return it. For storage that an immutable layer fills in each pass without allocating.
  template <class Element>
  [[nodiscard]] Element& persistent(void const* owner) {
    return persistent_.template of<Element>(owner);
  }

  // ---- for layers: backward

  /// Returns the destination of a parameter's gradient: the first writer of a step overwrites, later writers add.
  [[nodiscard]] GradientTarget<Real> gradient(Parameter const& p) { return parameters_.gradients().target(p); }
  /// Returns the destination for a writer that touches only some rows of a table and inserts them after writing.
  [[nodiscard]] RowGradientTarget<Real> gradient_by_rows(Parameter const& p) {
    return parameters_.gradients().target_by_rows(p);
  }
  /// Returns the destination of an activation's gradient; empty if no gradient flows there.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient(Variable<Rank> const& v) {
    loss_scale_.expect_scaled();
    return arena_.target(v.slot);
  }
  /// Returns the destination for a layer whose backward computes x's gradient elementwise from the gradient of its
  /// output y. If x's gradient is not written yet, it takes the memory of y's gradient, which no other closure reads.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place(Variable<Rank> const& x, Variable<Rank> const& y) {
    loss_scale_.expect_scaled();
    return arena_.target_in_place(x.slot, *y.slot);
  }
  /// Returns the destination for a layer that computes x's gradient from x's value in place. No other closure may read
  /// or write either.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place_of_value(Variable<Rank> const& x) {
    return arena_.target_in_place_of_value(*x.slot);
  }

  // ---- for the code that runs the model

  /// Binds values and gradients, and a model's buffers: see ParameterBinding.
  void bind(Real const* values, Real* gradients, std::size_t parameters) {
    parameters_.bind(values, gradients, parameters);
  }
  void bind(Real const* values, Real* gradients, ParameterLayout const& layout) {
    parameters_.bind(values, gradients, layout);
  }
  void bind_buffers(Real* buffers) noexcept { parameters_.bind_buffers(buffers); }
  /// Resets the written flags of gradients: the next writers overwrite.
  void begin_step() { parameters_.gradients().begin_step(); }
  /// Frees all activations. `key` seeds this micro-batch's random operations.
  void begin_micro_batch(Mode mode, std::uint64_t key) {
    mode_ = mode;
    random_.set(stream_, key);
    restart_micro_batch();
  }
  /// Restarts the current micro-batch, with equal mode and key.
  void restart_micro_batch() {
    stream_.join();
    if (arena_.is_fragmented() || staging_.scratch.is_fragmented()) stream_.synchronize();  // rewind frees the pieces
    arena_.rewind(), staging_.scratch.rewind(), tape_.clear();
    parameters_.gradients().begin_micro_batch();
    random_.rewind();
    loss_scale_.set_in_backward(false);
    if (tracer_) tracer_.begin_pass();
  }
  /// Runs the recorded closures in reverse; calls `sink` for each parameter after its last use. Invalidates the values
  /// of variables: gradients reuse their memory.
  void backward(ReadySink sink) {
    sink_ = tracer_.wrap(sink);
    loss_scale_.set_in_backward(true);
    tape_.run(0, *this, tracer()), stream_.join();
  }
  /// Records in `timeline` when each operation of the following passes ran; null stops recording. `now(self)` returns
  /// the current time of the space's work. `end_forward` marks the end of the loss.
  void trace(Timeline* timeline, double (*now)(void* self), void* self) { tracer_.start(timeline, {now, self}); }
  void end_forward() { tracer_.end_forward(); }
  /// Returns null unless the pass is traced. Operations without a backward report their end to it, by `ended`.
  [[nodiscard]] detail::Tracer<Space>* tracer() noexcept { return tracer_ ? &tracer_ : nullptr; }
  /// Returns a number that changes whenever the activations' memory moves.
  [[nodiscard]] std::uint64_t memory_version() const noexcept {
    return arena_.allocations() + staging_.scratch.allocations();
  }
  [[nodiscard]] std::size_t activation_bytes() const noexcept {
    return arena_.capacity_bytes() + staging_.scratch.capacity_bytes();
  }

  // ---- parts

  /// Returns the values and gradients. A pass depends on the gradients' written flags, on the batch, and on the
  /// contents and addresses of the space's memory.
  [[nodiscard]] ParameterBinding<Scalar, Space>& parameters() noexcept { return parameters_; }
  [[nodiscard]] ParameterBinding<Scalar, Space> const& parameters() const noexcept { return parameters_; }
  [[nodiscard]] ActivationArena<Space>& arena() noexcept { return arena_; }
  [[nodiscard]] Tape<Context>& tape() noexcept { return tape_; }
  [[nodiscard]] RandomKeys<Space>& random() noexcept { return random_; }
  [[nodiscard]] DecodingCache<Scalar>& cache() noexcept { return cache_; }
  [[nodiscard]] InReplicaGroup& replicas() noexcept { return replicas_; }
  /// Returns the factor on the gradients of losses; without members unless activations are float16.
  [[nodiscard]] detail::LossScale<Scalar>& loss_scaling() noexcept { return loss_scale_; }
  /// Returns the memory of nn::Staging.
  [[nodiscard]] detail::StagingMemory<Real, Scalar, Space>& staging() noexcept { return staging_; }

 private:
  Stream stream_;
  ParameterBinding<Scalar, Space> parameters_;
  ActivationArena<Space> arena_;
  detail::StagingMemory<Real, Scalar, Space> staging_;
  Tape<Context> tape_;
  detail::Tracer<Space> tracer_;
  PersistentObjects persistent_;
  ReadySink sink_;
  Mode mode_ = Mode::training;
  RandomKeys<Space> random_;
  DecodingCache<Scalar> cache_;
  InReplicaGroup replicas_;
  detail::LossScale<Scalar> loss_scale_;
};

}}}  // namespace lockstep::nn
