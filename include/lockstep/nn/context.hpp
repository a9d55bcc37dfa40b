// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/kernel/convert.hpp>
#include <lockstep/kernel/move.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/buffer.hpp>
#include <lockstep/nn/parameter.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/nn/variable.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

enum class Mode {
  training,    ///< records backward, applies dropout
  evaluation,  ///< records nothing
};

/// Told when a parameter's gradient is complete. A function pointer and not a template argument, so that all policies
/// share one instantiation of every layer.
struct ReadySink {
  void (*call)(void* self, Index offset, Index count) = nullptr;
  void* self = nullptr;
};

/// Where a gradient goes, and how. `data` is null when nobody wants it.
template <class Scalar>
struct GradientTarget {
  Scalar* data;
  Write write;
  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }
};

/// Where the gradient of a table goes of which only some rows may be touched. Where `touched` has bits, a row that it
/// contains is added to, any other is overwritten and entered; where it has none, `write` holds for the whole table.
template <class Scalar>
struct RowGradientTarget {
  Scalar* data;
  Write write;
  kernel::TouchedRows touched;
};

/// What one replica adds to the shared, immutable model: parameter values, gradients, activations, the tape of backward
/// closures, mode and random key. Not thread-safe: one thread runs forward and backward; kernels spread over `stream`.
/// Activations live in a bump arena: once the largest batch has been seen, a step allocates nothing.
template <class Scalar_, class Space_>
class Context {
 public:
  using Scalar = Scalar_;
  using Space = Space_;
  using Stream = memory::Stream<Space>;
  template <int Rank>
  using Variable = nn::Variable<Scalar, Rank, Space>;
  template <int Rank>
  using View = TensorView<Scalar, Rank, Space>;

  explicit Context(Stream stream) : stream_(stream) {}

  /// Says where values and gradients of `parameters` parameters lie. All gradients are dense, whatever form they ask
  /// for.
  void bind(Scalar const* values, Scalar* gradients, std::size_t parameters) {
    values_ = values;
    gradients_ = gradients;
    written_.assign(parameters, 0);
    pending_uses_.assign(parameters, 0);
    touched_.clear();
  }
  /// The same for the parameters of a layout, whose gradients get the form that they ask for.
  void bind(Scalar const* values, Scalar* gradients, ParameterLayout const& layout) {
    bind(values, gradients, layout.entries().size());
    if constexpr (Space::host_accessible) {
      Index words = 0;
      for (auto const& entry : layout.entries())
        if (entry.by_rows()) words += kernel::TouchedRows::words_for(entry.shape[0]);
      touched_bits_ = memory::Buffer<std::uint64_t>(words);
      auto* next = touched_bits_.data();
      for (auto entry = layout.entries().rbegin(); entry != layout.entries().rend(); ++entry) {  // the arena's order
        if (!entry->by_rows()) continue;
        touched_.push_back({entry->offset, entry->shape[0], entry->size / entry->shape[0], next});
        next += kernel::TouchedRows::words_for(entry->shape[0]);
      }
    }
  }

  /// Says where the values of the model's buffers lie; only needed for a model that has any.
  void bind_buffers(Scalar* buffers) noexcept { buffers_ = buffers; }

  [[nodiscard]] Stream stream() const noexcept { return stream_; }
  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  [[nodiscard]] bool recording() const noexcept { return mode_ == Mode::training; }

  // ---- for layers: forward

  template <int Rank>
  [[nodiscard]] TensorView<Scalar const, Rank, Space> value(Parameter const& p) const {
    TensorView<Scalar const, Rank, Space> view(values_ + p.offset, {});
    std::copy_n(p.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// A buffer of the model, to read or to write.
  template <int Rank>
  [[nodiscard]] TensorView<Scalar, Rank, Space> value(Buffer const& b) const {
    TensorView<Scalar, Rank, Space> view(buffers_ + b.offset, {});
    std::copy_n(b.shape.begin(), Rank, view.extent.begin());
    return view;
  }
  /// A new activation, uninitialised.
  template <int Rank>
  [[nodiscard]] Variable<Rank> variable(Extents<Rank> extent) {
    Variable<Rank> v{temporary<Scalar>(extent), nullptr};
    if (recording())
      v.slot = new (tape_memory_.take(sizeof(GradientSlot<Scalar>))) GradientSlot<Scalar>{nullptr, v.value.size()};
    return v;
  }
  /// Memory for this micro-batch that needs no gradient, uninitialised. Also for backward closures.
  template <class T, std::size_t Rank>
  [[nodiscard]] TensorView<T, static_cast<int>(Rank), Space> temporary(std::array<Index, Rank> extent) {
    return {scratch_.template take_elements<T>(elements(extent)), extent};
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
  /// A key for the next random operation of this forward pass: the same for every replica, another for every call.
  [[nodiscard]] std::uint64_t next_key() noexcept { return mix(step_key_, ++random_operations_); }

  /// Registers the backward of the layer that made `output` from `parameters` (a std::tie of them): `f(context)` runs
  /// when output's gradient is complete, and not at all when nobody used it. A closure holds views and references only.
  /// A parameter that the model does not visit counts as absent: so a layer can name those that an option leaves out.
  template <int Rank, class... P, class F>
  void on_backward(Variable<Rank> output, std::tuple<P const&...> parameters, F f) {
    static_assert((std::is_same_v<P, Parameter> && ...), "Lockstep: on_backward takes std::tie of nn::Parameters");
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    if (!recording()) return;
    std::apply([&](auto const&... p) { (expect_use(p), ...); }, parameters);
    struct Closure {
      F f;
      GradientSlot<Scalar>* output;
      std::tuple<P const*...> parameters;
    };
    auto* closure = new (tape_memory_.take(sizeof(Closure))) Closure{
        f, output.slot, std::apply([](auto const&... p) { return std::tuple<P const*...>{&p...}; }, parameters)};
    tape_.push_back({closure, [](void* self, Context& context) {
                       auto& c = *static_cast<Closure*>(self);
                       if (c.output->data) c.f(context);
                       std::apply([&](auto const*... p) { (context.used(*p), ...); }, c.parameters);
                     }});
  }

  /// What `f(context)` returns, a Variable or a Sequence, without what is needed for its backward: that memory is given
  /// back at once, and f runs again, alike to the bit, when backward gets there. `inputs` are all variables that f
  /// takes gradients to. The parameters that it uses are counted now. A Sequence's layout must outlive f.
  template <class F, int... Ranks>
  [[nodiscard]] auto recompute(F f, Variable<Ranks> const&... inputs) {
    static_assert(std::is_trivially_destructible_v<F>, "Lockstep: a backward closure holds views and references only");
    auto const start = mark();
    auto const random = random_operations_;
    auto const made = f(*this);
    auto const made_tokens = tokens_of(made);
    bool const is_input = (false || ... || (made_tokens.slot == inputs.slot));
    if (tape_.size() == start.tape || !made_tokens.slot || is_input) return made;

    rewind(start);
    auto const output = another(made_tokens);
    kernel::Move<Space>::run(stream_, made_tokens.value.data, output.value.data, output.value.size());
    struct Closure {
      F f;
      std::uint64_t random;
      GradientSlot<Scalar>* output;
      std::tuple<Variable<Ranks>...> inputs;
    };
    auto* closure = new (tape_memory_.take(sizeof(Closure)))
        Closure{f, random, output.slot, std::tuple<Variable<Ranks>...>{inputs...}};
    tape_.push_back({closure, [](void* self, Context& context) {
                       auto& c = *static_cast<Closure*>(self);
                       std::apply([&](auto const&... x) { (context.reserve_gradient(x), ...); }, c.inputs);
                       context.replay(c.f, c.random, c.output->data);
                     }});
    if constexpr (requires { made.tokens; }) {
      return made.with(output);
    } else {
      return output;
    }
  }
  /// Whether this forward pass is one that `recompute` repeats: a layer that counts its passes counts it once.
  [[nodiscard]] bool replaying() const noexcept { return replaying_; }

  /// An object of this context that outlives the micro-batch: made at the first call for this owner and type, found
  /// again at later ones. For storage that a layer, itself immutable, fills anew each time without allocating.
  template <class T>
  [[nodiscard]] T& kept(void const* owner) {
    void (*const destroy)(void*) = [](void* object) { delete static_cast<T*>(object); };
    for (auto& [whose, object] : kept_)
      if (whose == owner && object.get_deleter() == destroy) return *static_cast<T*>(object.get());
    kept_.push_back({owner, {new T, destroy}});
    return *static_cast<T*>(kept_.back().object.get());
  }

  // ---- for layers: backward

  /// The target of a parameter's gradient: the first writer of a step overwrites, later ones add.
  [[nodiscard]] GradientTarget<Scalar> gradient(Parameter const& p) {
    auto const before = std::exchange(written_[index(p)], std::uint8_t{1});
    if (auto const* touched = touched_of(p); touched && before)
      write_all_rows(*touched);
    else if (touched)
      touched->insert_all();
    return {gradients_ + p.offset, before ? Write::add : Write::overwrite};
  }
  /// The same for a table of which the writer touches only some rows. The writer enters them when it has written them.
  [[nodiscard]] RowGradientTarget<Scalar> gradient_by_rows(Parameter const& p) {
    auto const* const touched = touched_of(p);
    if (!touched) {
      auto const target = gradient(p);
      return {target.data, target.write, {}};
    }
    written_[index(p)] = 1;
    return {gradients_ + p.offset, Write::add, *touched};
  }
  /// The target of an activation's gradient; empty when no gradient flows there.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient(Variable<Rank> const& v) {
    if (!v.slot) return {nullptr, Write::overwrite};
    if (v.slot->data) return {v.slot->data, Write::add};
    v.slot->data = v.slot->reserved ? v.slot->reserved : scratch_.template take_elements<Scalar>(v.slot->size);
    return {v.slot->data, Write::overwrite};
  }

  /// The same for a layer whose backward makes x's gradient from that of its output y element by element: if nothing was
  /// written to it yet, it takes the memory of y's, which nobody else reads any more.
  template <int Rank>
  [[nodiscard]] GradientTarget<Scalar> gradient_in_place(Variable<Rank> const& x, Variable<Rank> const& y) {
    if (!x.slot || x.slot->data || x.slot->reserved || x.slot->size != y.slot->size) return gradient(x);
    x.slot->data = y.slot->data;
    return {x.slot->data, Write::overwrite};
  }

  // ---- for who runs the model

  /// Forgets which gradients were written: the next writers overwrite.
  void begin_step() {
    std::fill(written_.begin(), written_.end(), std::uint8_t{0});
    for (auto const& table : touched_) table.clear();
  }
  /// Gives all activations back. `key` seeds this micro-batch's random operations.
  void begin_micro_batch(Mode mode, std::uint64_t key) {
    scratch_.rewind();
    tape_memory_.rewind();
    tape_.clear();
    std::fill(pending_uses_.begin(), pending_uses_.end(), 0);
    mode_ = mode;
    step_key_ = key;
    random_operations_ = 0;
    replaying_ = false;
  }
  /// Runs the recorded closures in reverse; `sink` hears of each parameter after its last use.
  void backward(ReadySink sink) {
    sink_ = sink;
    run_tape(0);
  }
  [[nodiscard]] bool written(std::size_t ordinal) const noexcept { return written_[ordinal] != 0; }
  /// The parameters whose gradient goes by rows, in the arena's order, and which rows this step has touched.
  [[nodiscard]] std::span<kernel::TouchedRows const> touched() const noexcept { return touched_; }
  [[nodiscard]] std::size_t activation_bytes() const noexcept { return scratch_.capacity_bytes(); }

 private:
  struct Entry {
    void* closure;
    void (*run)(void*, Context&);
  };
  struct Kept {
    void const* owner;
    std::unique_ptr<void, void (*)(void*)> object;
  };

  using Scratch = memory::Scratch<memory::DefaultResource<Space>>;

  struct Mark {
    typename Scratch::Mark scratch;
    memory::Scratch<>::Mark tape_memory;
    std::size_t tape;
  };
  [[nodiscard]] Mark mark() const noexcept { return {scratch_.mark(), tape_memory_.mark(), tape_.size()}; }
  void rewind(Mark const& mark) noexcept {
    scratch_.rewind(mark.scratch);
    tape_memory_.rewind(mark.tape_memory);
    tape_.resize(mark.tape);
  }

  void run_tape(std::size_t first) {
    for (auto i = tape_.size(); i-- > first;) tape_[i].run(tape_[i].closure, *this);
    tape_.resize(first);
  }
  /// Forward and backward of what `recompute` put off; `gradient` is that of its output.
  template <class F>
  void replay(F const& f, std::uint64_t random, Scalar* gradient) {
    auto const start = mark();
    random_operations_ = random;
    auto const replaying_before = std::exchange(replaying_, true);
    tokens_of(f(*this)).slot->data = gradient;
    replaying_ = replaying_before;
    run_tape(start.tape);
    rewind(start);
  }
  template <int Rank>
  void reserve_gradient(Variable<Rank> const& v) {
    if (v.slot && !v.slot->data && !v.slot->reserved)
      v.slot->reserved = scratch_.template take_elements<Scalar>(v.slot->size);
  }
  template <int Rank>
  [[nodiscard]] Variable<Rank> another(Variable<Rank> const& v) {
    return variable<Rank>(v.value.extent);
  }
  template <class Made>
  [[nodiscard]] static auto tokens_of(Made const& made) noexcept {
    if constexpr (requires { made.tokens; }) {
      return made.tokens;
    } else {
      return made;
    }
  }

  static std::size_t index(Parameter const& p) noexcept { return static_cast<std::size_t>(p.ordinal); }

  [[nodiscard]] kernel::TouchedRows const* touched_of(Parameter const& p) const noexcept {
    for (auto const& table : touched_)
      if (table.offset == p.offset && table.rows > 0) return &table;
    return nullptr;
  }
  /// Makes a gradient by rows dense, so that all of it can be added to.
  void write_all_rows(kernel::TouchedRows const& table) {
    auto* const gradient = gradients_ + table.offset;
    table.for_runs(0, table.rows, [&](Index first, Index last, bool touched) {
      if (!touched) std::fill_n(gradient + first * table.width, (last - first) * table.width, Scalar{0});
    });
    table.insert_all();
  }

  void expect_use(Parameter const& p) {
    if (p.ordinal >= 0 && !replaying_) ++pending_uses_[index(p)];
  }
  void used(Parameter const& p) {
    if (p.ordinal < 0) return;
    if (--pending_uses_[index(p)] == 0 && written_[index(p)] && sink_.call) sink_.call(sink_.self, p.offset, p.size());
  }

  Stream stream_;
  Scalar const* values_ = nullptr;
  Scalar* gradients_ = nullptr;
  Scalar* buffers_ = nullptr;
  std::vector<std::uint8_t> written_;
  std::vector<kernel::TouchedRows> touched_;
  memory::Buffer<std::uint64_t> touched_bits_;
  std::vector<int> pending_uses_;
  Scratch scratch_;                // values and gradients
  memory::Scratch<> tape_memory_;  // closures and slots: the host reads them
  std::vector<Entry> tape_;
  std::vector<Kept> kept_;
  ReadySink sink_;
  Mode mode_ = Mode::training;
  std::uint64_t step_key_ = 0;
  std::uint64_t random_operations_ = 0;
  bool replaying_ = false;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
