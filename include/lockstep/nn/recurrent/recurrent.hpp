// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/kernel/recurrent/recurrent.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::Direction;

/// Result of LSTM::forward_with_cell.
template <class Context>
struct StatesAndCell {
  SequenceOf<Context> states;     ///< the states after each token
  VariableOf<Context, 2> cell{};  ///< [rows, width]: the cell after the last token of each sequence
};

/// Recurrent layer: y holds the state after each token. The state begins at zero for every sequence, or at a given one,
/// and is updated token by token, in either direction. Padding is not read.
///
/// - Bidirectional: `concatenate_channels(context, forwards.forward(context, x), backwards.forward(context, x))`.
/// - Last state: `last_token` of y, or `first_token` of y for the backward direction; an LSTM's last cell (c_n in
///   PyTorch) by `forward_with_cell`.
/// - Prediction token by token: Predictor::next continues from the states of a forward layer.
///
/// Parameters and their initializers are those of torch.nn.LSTM, GRU and RNN, under other names: U(-1/sqrt(width),
/// 1/sqrt(width)). The recurrence is computed in Real for any storage type. A batch takes as many steps as its longest
/// sequence has tokens; group sequences of similar length with data::LengthBucketedSampler.
/// @shape input.weight [gates * width, inputs]   @shape hidden.weight [gates * width, width]
/// @shape input.bias, hidden.bias [gates * width]; the gates of an LSTM are input, forget, cell, output, of a GRU
/// reset, update, new
/// @determinism bitwise, for any number of threads
template <class Cell>
class Recurrent : detail::RejectedSequenceCalls {
 public:
  /// @throws ConfigError unless both are at least 1
  Recurrent(Index inputs, Index width, Direction direction = Direction::forward)
      : input_weight_{{Cell::gates * width, inputs}, Initializer::fan_in(width)},
        input_bias_{{Cell::gates * width}, Initializer::fan_in(width)},
        hidden_weight_{{Cell::gates * width, width}, Initializer::fan_in(width)},
        hidden_bias_{{Cell::gates * width}, Initializer::fan_in(width)},
        direction_(direction) {
    expect<ConfigError>(inputs >= 1 && width >= 1, [&] {
      return std::string(Cell::name) + ": " + std::to_string(inputs) + " inputs and the width " +
             std::to_string(width) + "; both must be at least 1";
    });
  }

  /// Names "input.weight", "input.bias", "hidden.weight" and "hidden.bias".
  void visit(auto&& each) {
    each("input.weight", input_weight_);
    each("input.bias", input_bias_);
    each("hidden.weight", hidden_weight_);
    each("hidden.bias", hidden_bias_);
  }

  /// Returns the width of x.
  [[nodiscard]] Index inputs() const noexcept { return input_weight_.shape[1]; }
  /// Returns the width of the state.
  [[nodiscard]] Index width() const noexcept { return hidden_weight_.shape[1]; }

  /// Returns the states after each token.
  /// @shape x.tokens [slots, inputs]   @shape returns [slots, width], zero in padding
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return run(context, x, {}, {}, nullptr);
  }
  /// Returns the states after each token, from a first state for each sequence (h_0 in PyTorch). Gradients flow into
  /// it. Predictor::next continues from its own states and does not read it.
  /// @shape x.tokens [slots, inputs]   @shape state [rows, width]   @shape returns [slots, width], zero in padding
  /// @throws ShapeError if x has another width, or the state another shape
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            VariableOf<Context, 2> const& state) const {
    static_assert(!has_cell,
                  "Lockstep: an LSTM begins from a state and a cell: layer.forward(context, x, state, cell)");
    return run(context, x, expect_state(x, state, "state"), state, nullptr);
  }
  /// Returns the states after each token, from a first state and cell for each sequence (h_0 and c_0 in PyTorch).
  /// Gradients flow into both. Predictor::next continues from its own and does not read them.
  /// @shape x.tokens [slots, inputs]   @shape state, cell [rows, width]   @shape returns [slots, width], zero in
  /// padding
  /// @throws ShapeError if x has another width, or the state or the cell another shape
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            VariableOf<Context, 2> const& state,
                                            VariableOf<Context, 2> const& cell) const {
    static_assert(has_cell, "Lockstep: only an LSTM has a cell: layer.forward(context, x, state)");
    return run(context, x, expect_state(x, state, "state"), expect_state(x, cell, "cell"), nullptr);
  }
  /// Returns the states after each token, and the cell after the last token of each sequence (c_n in PyTorch), from
  /// states and cells of zero. Gradients flow from both. A sequence without tokens has its first cell.
  /// @shape x.tokens [slots, inputs]   @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] StatesAndCell<Context> forward_with_cell(Context& context, SequenceOf<Context> const& x) const {
    return run_with_cell(context, x, {}, {});
  }
  /// Returns the same from a first state and cell for each sequence, as `forward` does.
  /// @shape x.tokens [slots, inputs]   @shape state, cell [rows, width]
  /// @throws ShapeError if x has another width, or the state or the cell another shape
  template <class Context>
  [[nodiscard]] StatesAndCell<Context> forward_with_cell(Context& context, SequenceOf<Context> const& x,
                                                         VariableOf<Context, 2> const& state,
                                                         VariableOf<Context, 2> const& cell) const {
    return run_with_cell(context, x, expect_state(x, state, "state"), expect_state(x, cell, "cell"));
  }
  /// Rejects an argument that is no Sequence at compile time.
  template <class Context, detail::NotSequence<Context> Input>
  SequenceOf<Context> forward(Context&, Input const& x) const {
    return detail::reject_non_sequence<Context>(x);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  static constexpr bool has_cell = std::is_same_v<Cell, kernel::LstmCell>;

  /// Returns the argument if it has a row of the layer's width for each sequence.
  template <class Sequence, class Variable>
  [[nodiscard]] Variable const& expect_state(Sequence const& x, Variable const& state, char const* name) const {
    Extents<2> const extent{x.layout.rows, width()};
    expect<ShapeError>(state.value.extent == extent, [&] {
      return hidden_weight_.layer(Cell::name, 2) + ": the first " + name + " is " + to_string(state.value.extent) +
             " and must be " + to_string(extent) + ", a row for each sequence";
    });
    return state;
  }

  template <class Context>
  [[nodiscard]] StatesAndCell<Context> run_with_cell(Context& context, SequenceOf<Context> const& x,
                                                     VariableOf<Context, 2> const& state,
                                                     VariableOf<Context, 2> const& cell) const {
    static_assert(has_cell,
                  "Lockstep: only an LSTM has a cell: the last state is nn::last_token of forward(context, x)");
    auto const last = context.template variable<2>({x.layout.rows, width()});
    context.on_backward(last, std::tuple{}, [](Context&) {});  // runs last, so that its gradient stays until then
    auto const states = run(context, x, state, cell, &last);
    context.on_backward(last, std::tuple{}, [y = states.tokens](Context& c) {  // y's gradient is 0 if nothing reads y
      Staging work(c);
      auto const dy = work.gradient(y);
      if (dy.write == Write::add) return;
      auto const value = work.read(c.saved_value(y)).reshape(Extents<1>{y.value.size()});
      kernel::BinaryOperation<typename Context::Space>::template forward<kernel::Minus, Operand<Context>>(
          c.stream(), value, value, {dy.data, value.extent});
    });
    return {states, last};
  }
  /// @param state, cell the first ones, or empty; a cell without a number of its own for the next step takes the state
  /// @param last the last cell, or null
  template <class Context>
  [[nodiscard]] SequenceOf<Context> run(Context& context, SequenceOf<Context> const& x,
                                        VariableOf<Context, 2> const& state, VariableOf<Context, 2> const& cell,
                                        VariableOf<Context, 2> const* last) const {
    using Space = typename Context::Space;
    using Real = typename Context::Real;
    using Kernel = kernel::Recurrent<Space>;
    expect<ShapeError>(x.width() == inputs(), [&] {
      return input_weight_.layer(Cell::name, 2) + ": the input is " + to_string(x.tokens.value.extent) + " and needs " +
             std::to_string(inputs()) + " channels";
    });
    auto const rows = x.layout.rows, gate_columns = Cell::gates * width();
    kernel::RecurrentPass<Real, Space> pass{x.layout, direction_,
                                            context.template temporary<Real>(Extents<2>{x.layout.slots, gate_columns}),
                                            context.template temporary<Real>(Extents<2>{x.layout.slots, width()})};
    auto const y = context.template variable<2>({x.layout.slots, width()});
    {
      Staging work(context);
      auto const weight = context.template value<2>(hidden_weight_);
      auto const bias = context.template value<1>(hidden_bias_);
      kernel::Linear<Space>::template forward<Real>(context.stream(), work.read_real(x.tokens.value),
                                                    context.template value<2>(input_weight_),
                                                    context.template value<1>(input_bias_), pass.gates);
      auto const product = work.temporary(Extents<2>{rows, gate_columns});
      auto now = work.temporary(Extents<2>{rows, width()});
      [[maybe_unused]] TensorView<Real, 2, Space> kept_by_cache;
      bool begins = state.value.data != nullptr;
      if constexpr (Space::host_accessible)
        if (context.cache().is_decoding()) {
          if (direction_ == Direction::backward) context.cache().expect_whole_sequences(Cell::name);
          now = context.cache().recurrent_state(x.layout, width());
          pass.earlier = kept_by_cache = context.cache().recurrent_state(x.layout, width());
          begins = begins && !context.cache().continues();
        }
      if (begins) {
        copy(context, work.read_real(state.value), now, Write::overwrite);
        pass.earlier = work.read_real(cell.value);
      }
      auto const out = work.write(y.value);
      for (Index t = 0; t < x.layout.length; ++t) {
        if (t > 0 || pass.earlier.data)
          kernel::Gemm<Space>::template multiply<Real>(context.stream(), 1, now, kernel::Transpose::no, weight,
                                                       kernel::Transpose::yes, 0, product);
        Kernel::template forward_step<Cell, Real>(context.stream(), t, pass, product, bias, now, out);
      }
      if (last) Kernel::template last_kept<Real>(context.stream(), pass, work.write(last->value));
      if constexpr (Space::host_accessible)
        if (kept_by_cache.data) save_last_states(pass, kept_by_cache);
    }
    pass.earlier = {};  // its memory ends here
    auto const last_cell = last ? *last : VariableOf<Context, 2>{};
    context.on_backward(
        y, std::tie(input_weight_, input_bias_, hidden_weight_, hidden_bias_),
        [this, x, y, pass, state, cell, last_cell](Context& c) { backward(c, x, y, pass, state, cell, last_cell); });
    return x.with(y);
  }
  /// Copies values, or adds them.
  template <class Context, class Real, class Space>
  static void copy(Context& context, TensorView<Real const, 2, Space> from, TensorView<Real, 2, Space> to,
                   Write write) {
    Extents<1> const flat{from.size()};
    kernel::BinaryOperation<Space>::template backward<kernel::FirstOperand, Real>(context.stream(), from.reshape(flat),
                                                                                  {}, to.reshape(flat), write);
  }
  /// Keeps the cell's number after the last token, for the tokens that follow.
  template <class Real, class Space>
  void save_last_states(kernel::RecurrentPass<Real, Space> const& pass, TensorView<Real, 2, Space> to) const {
    for (Index row = 0; row < pass.layout.rows; ++row)
      if (auto const tokens = pass.layout.tokens(row); tokens > 0)
        std::copy_n(pass.kept.data + (pass.layout.start(row) + tokens - 1) * width(), width(), to.data + row * width());
  }

  template <class Context>
  void backward(Context& c, SequenceOf<Context> const& x, VariableOf<Context, 2> const& y,
                kernel::RecurrentPass<typename Context::Real, typename Context::Space> pass,
                VariableOf<Context, 2> const& state, VariableOf<Context, 2> const& cell,
                VariableOf<Context, 2> const& last_cell) const {
    using Space = typename Context::Space;
    using Real = typename Context::Real;
    using Kernel = kernel::Recurrent<Space>;
    auto const rows = x.layout.rows, slots = x.layout.slots, gate_columns = Cell::gates * width();
    Staging work(c);
    auto const dy = work.read(y.gradient());
    auto const weight = c.template value<2>(hidden_weight_);
    bool const begins = state.value.extent[0] > 0;
    if (begins) {
      pass.initial = work.read_real(c.saved_value(state));
      pass.earlier = work.read_real(c.saved_value(cell));
    }
    if (last_cell.slot && last_cell.slot->data) pass.dlast = work.read_real(last_cell.gradient());
    auto const before = work.temporary(Extents<2>{slots, width()});
    Kernel::template states_before<Real>(c.stream(), pass, work.read(c.saved_value(y)), before);
    auto const dstate = work.temporary(Extents<2>{rows, width()}), dkept = work.temporary(Extents<2>{rows, width()}),
               dproduct = work.temporary(Extents<2>{rows, gate_columns});
    auto const dparts = Cell::parts_differ ? work.temporary(Extents<2>{slots, gate_columns}) : pass.gates;
    for (Index t = x.layout.length; t-- > 0;) {
      Kernel::template backward_step<Cell, Real>(c.stream(), t, pass, dy, before, dstate, dkept, dproduct, dparts);
      if (t > 0 || begins)
        kernel::Gemm<Space>::template multiply<Real>(c.stream(), 1, dproduct, kernel::Transpose::no, weight,
                                                     kernel::Transpose::no, Cell::passes_state ? 1 : 0, dstate);
    }
    if (begins && x.layout.length > 0) {
      auto const add = [&](VariableOf<Context, 2> const& to, TensorView<Real const, 2, Space> from) {
        if (auto const gradient = work.gradient_real(to)) copy(c, from, {gradient.data, from.extent}, gradient.write);
      };
      add(state, dstate);
      if constexpr (has_cell) add(cell, dkept);
    } else if (begins && pass.dlast.data) {  // no step: the last cell is the first
      if (auto const gradient = work.gradient_real(cell))
        copy(c, pass.dlast, {gradient.data, pass.dlast.extent}, gradient.write);
    }
    add_parameter_gradients(c, work, dparts, before, hidden_weight_, hidden_bias_, {}, Write::overwrite);
    auto const dx = work.gradient_real(x.tokens);  // after the first states' gradients, which may be of one variable
    add_parameter_gradients(c, work, pass.gates, work.read_real(c.saved_value(x.tokens)), input_weight_, input_bias_,
                            {dx.data, x.tokens.value.extent}, dx.write);
  }

  /// Adds a matrix product's contribution to the gradients of its weight and bias. `dy` is the product's gradient, `x`
  /// its input.
  template <class Context>
  static void add_parameter_gradients(Context& c, Staging<Context>& work,
                                      TensorView<typename Context::Real const, 2, typename Context::Space> dy,
                                      TensorView<typename Context::Real const, 2, typename Context::Space> x,
                                      Parameter const& weight, Parameter const& bias,
                                      TensorView<typename Context::Real, 2, typename Context::Space> dx,
                                      Write dx_write) {
    using Real = typename Context::Real;
    using Kernel = kernel::Linear<typename Context::Space>;
    auto const w = c.template value<2>(weight);
    auto const dweight = c.gradient(weight), dbias = c.gradient(bias);
    auto const partial =
        work.temporary(Extents<1>{Kernel::partial_elements(c.stream(), x.extent[0], w.extent[1], w.extent[0])});
    Kernel::template backward<Real>(c.stream(), dy, x, w, {}, dx, dx_write, {dweight.data, w.extent}, dweight.write,
                                    {dbias.data, {w.extent[0]}}, dbias.write, partial.data);
  }

  Parameter input_weight_, input_bias_, hidden_weight_, hidden_bias_;
  Direction direction_;
};

/// Long short-term memory. @source kernel::LstmCell
using LSTM = Recurrent<kernel::LstmCell>;
/// Gated recurrent unit. @source kernel::GruCell
using GRU = Recurrent<kernel::GruCell>;
/// Simple recurrent layer with a hyperbolic tangent. @source kernel::RnnCell
using RNN = Recurrent<kernel::RnnCell>;

}}}  // namespace lockstep::nn
