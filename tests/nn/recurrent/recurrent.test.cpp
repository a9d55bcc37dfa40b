// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/recurrent/recurrent.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/nn/convolution/concatenate_channels.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/elementwise/subtract.hpp>
#include <lockstep/nn/elementwise/tanh.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/pooling/pooling.hpp>

#include "kernel/values.hpp"
#include "malloc_count.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::learned;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;
using nn::Direction;

namespace {

constexpr Index inputs = 3, width = 5;

/// A recurrent layer over sequences that are parameters; `both` adds one in the other direction.
template <class Layer>
struct Model {
  nn::Parameter x;
  Layer one, other;
  bool both;
  Model(TokenBatch const& batch, Direction direction, bool two = false)
      : x{{batch.rows * batch.length, inputs}, nn::Initializer::normal(1)},
        one(inputs, width, direction),
        other(inputs, width, direction == Direction::forward ? Direction::backward : Direction::forward),
        both(two) {}
  void visit(auto&& each) { each("x", x), each("one", one), each("other", other); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const in{learned(context, x), batch.layout()};
    auto const y = one.forward(context, in);
    auto const out = both ? nn::concatenate_channels(context, y, other.forward(context, in)) : y;
    return lockstep_test::irregular_loss(context, out.tokens, &in.layout);
  }
};

/// The output of one forward pass, token by token.
template <class Layer>
std::vector<double> values_of(Trial<Model<Layer>, double>& trial, nn::SequenceLayout<HostSpace> const& layout,
                              std::vector<double> const& numbers) {
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  nn::Sequence<double, HostSpace> const x{
      context.input(TensorView<double const, 2, HostSpace>{numbers.data(), {layout.slots, inputs}}), layout};
  auto const y = trial.model.one.forward(context, x);
  std::vector<double> out;
  for (Index row = 0; row < layout.rows; ++row)
    for (Index t = 0; t < layout.tokens(row); ++t)
      for (Index c = 0; c < width; ++c) out.push_back(y.tokens.value(layout.start(row) + t, c));
  for (Index slot = 0; slot < layout.slots; ++slot)
    if (!layout.is_token(slot))
      for (Index c = 0; c < width; ++c) CHECK(y.tokens.value(slot, c) == 0);
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("gradients, in both directions, without padding and empty sequences", Layer, nn::LSTM, nn::GRU,
                   nn::RNN) {
  for (auto const& lengths : {std::vector<std::int32_t>{1}, {4}, {5, 0, 1, 9, 3}, {0, 0}}) {
    TokenBatch const batch(lengths, 9, 11);
    for (auto const direction : {Direction::forward, Direction::backward})
      for (bool const both : {false, true}) {
        auto const result = check_model(Model<Layer>(batch, direction, both), batch);
        CAPTURE(result.where);
        CHECK(result.ok());
      }
  }
  for (auto const& batch : {TokenBatch({}, 9, 11), TokenBatch({0, 0}, 0, 11)}) {
    Trial<Model<Layer>, float> trial(Model<Layer>(batch, Direction::forward));
    CHECK(trial.step(batch).sum == 0);
    for (float const gradient : trial.gradients) CHECK(gradient == 0);
  }
}

TEST_CASE_TEMPLATE(
    "ragged sequences equal padded ones, and a reverse layer equals a forward layer on reversed sequences", Layer,
    nn::LSTM, nn::GRU, nn::RNN) {
  std::vector<std::int32_t> const lengths{4, 0, 1, 6};
  std::vector<Index> const offsets{0, 4, 4, 5, 11};
  TokenBatch const batch(lengths, 7, 11);
  auto const ragged = nn::SequenceLayout<HostSpace>::ragged(11, 6, {offsets.data(), {5}}, batch.places());
  auto const packed = lockstep_test::values<double>(11 * inputs, 3);
  std::vector<double> padded(static_cast<std::size_t>(4 * 7 * inputs), 77), turned(packed.size());
  for (std::size_t row = 0; row < lengths.size(); ++row)
    for (Index t = 0; t < lengths[row]; ++t) {
      auto const from = packed.begin() + (offsets[row] + t) * inputs;
      std::copy_n(from, inputs, padded.begin() + (static_cast<Index>(row) * 7 + t) * inputs);
      std::copy_n(from, inputs, turned.begin() + (offsets[row] + lengths[row] - 1 - t) * inputs);
    }
  Trial<Model<Layer>, double> forward(Model<Layer>(batch, Direction::forward)),
      backward(Model<Layer>(batch, Direction::backward));
  auto const expected = values_of(forward, ragged, packed);
  CHECK(values_of(forward, batch.layout(), padded) == expected);
  auto const back = values_of(backward, ragged, turned);
  CHECK(values_of(backward, batch.layout(), padded) == values_of(backward, ragged, packed));
  for (std::size_t row = 0; row < lengths.size(); ++row)
    for (Index t = 0; t < lengths[row]; ++t)
      for (Index c = 0; c < width; ++c)
        CHECK(back[static_cast<std::size_t>((offsets[row] + lengths[row] - 1 - t) * width + c)] ==
              expected[static_cast<std::size_t>((offsets[row] + t) * width + c)]);
}

namespace {

/// The cells of layers for one number each, by definition: h of the first step, then h of the second.
struct ByHand {
  std::vector<double> const& values;
  nn::ParameterLayout const& layout;

  [[nodiscard]] double at(std::string const& name, Index row, Index column = 0) const {
    for (auto const& entry : layout.entries())
      if (entry.name == name) {
        auto const columns = entry.shape.size() > 1 ? entry.shape[1] : 1;
        return values[static_cast<std::size_t>(entry.offset + row * columns + column)];
      }
    FAIL(name);
    return 0;
  }
  [[nodiscard]] double part(std::string const& of, Index gate, Index c, double const* x, Index count) const {
    double sum = at("one." + of + ".bias", gate * width + c);
    for (Index i = 0; i < count; ++i) sum += at("one." + of + ".weight", gate * width + c, i) * x[i];
    return sum;
  }
};
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

void step(nn::LSTM const&, ByHand const& by, double const* x, std::vector<double>& h, std::vector<double>& c) {
  auto const before = h;
  for (Index k = 0; k < width; ++k) {
    auto const gate = [&](Index g) {
      return by.part("input", g, k, x, inputs) + by.part("hidden", g, k, before.data(), width);
    };
    auto const at = static_cast<std::size_t>(k);
    c[at] = logistic(gate(1)) * c[at] + logistic(gate(0)) * std::tanh(gate(2));
    h[at] = logistic(gate(3)) * std::tanh(c[at]);
  }
}
void step(nn::GRU const&, ByHand const& by, double const* x, std::vector<double>& h, std::vector<double>&) {
  auto const before = h;
  for (Index k = 0; k < width; ++k) {
    auto const in = [&](Index g) { return by.part("input", g, k, x, inputs); };
    auto const of_state = [&](Index g) { return by.part("hidden", g, k, before.data(), width); };
    auto const at = static_cast<std::size_t>(k);
    auto const reset = logistic(in(0) + of_state(0)), update = logistic(in(1) + of_state(1));
    h[at] = (1 - update) * std::tanh(in(2) + reset * of_state(2)) + update * before[at];
  }
}

void step(nn::RNN const&, ByHand const& by, double const* x, std::vector<double>& h, std::vector<double>&) {
  auto const before = h;
  for (Index k = 0; k < width; ++k)
    h[static_cast<std::size_t>(k)] =
        std::tanh(by.part("input", 0, k, x, inputs) + by.part("hidden", 0, k, before.data(), width));
}

}  // namespace

TEST_CASE_TEMPLATE("states equal the definition's", Layer, nn::LSTM, nn::GRU, nn::RNN) {
  TokenBatch const batch({4}, 4, 11);
  Trial<Model<Layer>, double> trial(Model<Layer>(batch, Direction::forward));
  auto const numbers = lockstep_test::values<double>(4 * inputs, 3);
  auto const made = values_of(trial, batch.layout(), numbers);
  std::vector<double> h(width), c(width);
  for (Index t = 0; t < 4; ++t) {
    step(trial.model.one, {trial.values, trial.layout}, numbers.data() + t * inputs, h, c);
    for (Index k = 0; k < width; ++k)
      CHECK(made[static_cast<std::size_t>(t * width + k)] ==
            doctest::Approx(h[static_cast<std::size_t>(k)]).epsilon(1e-12));
  }
}

namespace {

/// A recurrent layer whose first states are parameters, over sequences that are parameters, too.
template <class Layer>
struct Begun {
  nn::Parameter x, state, cell;
  Layer one;
  Begun(TokenBatch const& batch, Direction direction)
      : x{{batch.rows * batch.length, inputs}, nn::Initializer::normal(1)},
        state{{batch.rows, width}, nn::Initializer::normal(1)},
        cell{{batch.rows, width}, nn::Initializer::normal(1)},
        one(inputs, width, direction) {}
  void visit(auto&& each) { each("x", x), each("state", state), each("cell", cell), each("one", one); }
  template <class Context>
  nn::SequenceOf<Context> states(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const in{learned(context, x), batch.layout()};
    auto const first = learned(context, state);
    if constexpr (std::is_same_v<Layer, nn::LSTM>)
      return one.forward(context, in, first, learned(context, cell));
    else
      return one.forward(context, in, first);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const y = states(context, batch);
    return lockstep_test::irregular_loss(context, y.tokens, &y.layout);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a layer begins from given states, and passes gradients to them", Layer, nn::LSTM, nn::GRU,
                   nn::RNN) {
  for (auto const& lengths : {std::vector<std::int32_t>{1}, {4}, {5, 0, 1, 9, 3}, {0, 0}})
    for (auto const direction : {Direction::forward, Direction::backward}) {
      TokenBatch const batch(lengths, 9, 11);
      auto const result = check_model(Begun<Layer>(batch, direction), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  TokenBatch const none({0, 0}, 0, 11);  // has no step, so that no gradient reaches the states
  Trial<Begun<Layer>, float> empty(Begun<Layer>(none, Direction::forward));
  CHECK(empty.step(none).sum == 0);
  for (float const gradient : empty.gradients) CHECK(gradient == 0);

  TokenBatch const batch({4}, 4, 11);
  Trial<Begun<Layer>, double> trial(Begun<Layer>(batch, Direction::forward));
  ByHand const by{trial.values, trial.layout};
  std::vector<double> h(width), c(width);
  for (Index k = 0; k < width; ++k) {
    h[static_cast<std::size_t>(k)] = by.at("state", 0, k);
    c[static_cast<std::size_t>(k)] = by.at("cell", 0, k);
  }
  nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const made = trial.model.states(trial.context(), batch).tokens.value;
  for (Index t = 0; t < 4; ++t) {
    std::vector<double> x;
    for (Index i = 0; i < inputs; ++i) x.push_back(by.at("x", t, i));
    step(trial.model.one, by, x.data(), h, c);
    for (Index k = 0; k < width; ++k)
      CHECK(made(t, k) == doctest::Approx(h[static_cast<std::size_t>(k)]).epsilon(1e-12));
  }
}

namespace {

/// Two LSTMs: the second begins from the last state and cell of the first. The loss is of the second's states, of its
/// last cell, or of both.
struct Chained {
  enum class Loss { states, cell, both };
  nn::Parameter x, state, cell;
  nn::LSTM one, two;
  bool begins;
  Loss of;
  Chained(TokenBatch const& batch, Direction direction, bool with_first, Loss loss)
      : x{{batch.rows * batch.length, inputs}, nn::Initializer::normal(1)},
        state{{batch.rows, width}, nn::Initializer::normal(1)},
        cell{{batch.rows, width}, nn::Initializer::normal(1)},
        one(inputs, width, direction),
        two(inputs, width, direction),
        begins(with_first),
        of(loss) {}
  void visit(auto&& each) {
    each("x", x), each("state", state), each("cell", cell), each("one", one), each("two", two);
  }
  template <class Context>
  nn::StatesAndCell<Context> run(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const in{learned(context, x), batch.layout()};
    auto const encoded = begins ? one.forward_with_cell(context, in, learned(context, state), learned(context, cell))
                                : one.forward_with_cell(context, in);
    return two.forward_with_cell(context, in, nn::last_token(context, encoded.states), encoded.cell);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const made = run(context, batch);
    nn::Loss<HostSpace> loss;
    if (of != Loss::cell) loss += lockstep_test::irregular_loss(context, made.states.tokens, &made.states.layout);
    if (of != Loss::states) loss += lockstep_test::irregular_loss(context, made.cell);
    return loss;
  }
};

}  // namespace

TEST_CASE("an LSTM's last cell is the definition's, and takes part in backward like its states") {
  for (auto const& lengths : {std::vector<std::int32_t>{1}, {4}, {5, 0, 1, 9, 3}, {0, 0}})
    for (auto const direction : {Direction::forward, Direction::backward})
      for (bool const begins : {false, true})
        for (auto const of : {Chained::Loss::states, Chained::Loss::cell, Chained::Loss::both}) {
          if (of != Chained::Loss::both && lengths.size() < 5) continue;  // few sequences are tried with both at once
          TokenBatch const batch(lengths, 9, 11);
          auto const result = check_model(Chained(batch, direction, begins, of), batch);
          CAPTURE(result.where);
          CHECK(result.ok());
        }
  TokenBatch const none({0, 0}, 0, 11);  // without a step, the last cell is the first
  Trial<Chained, double> empty(Chained(none, Direction::forward, true, Chained::Loss::cell));
  static_cast<void>(empty.step(none));
  ByHand const at_first{empty.values, empty.layout};
  nn::Pass(empty.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const same = empty.model.run(empty.context(), none).cell.value;
  for (Index k = 0; k < width; ++k) CHECK(same(1, k) == at_first.at("cell", 1, k));
  bool some = false;
  for (auto const& entry : empty.layout.entries())
    for (Index i = 0; i < entry.size; ++i) {
      bool const has = empty.gradients[static_cast<std::size_t>(entry.offset + i)] != 0;
      CHECK((!has || entry.name == "cell"));
      some = some || has;
    }
  CHECK(some);

  TokenBatch const batch({4}, 4, 11);
  Trial<Chained, double> trial(Chained(batch, Direction::forward, true, Chained::Loss::both));
  ByHand const by{trial.values, trial.layout};
  std::vector<double> h(width), c(width);
  for (Index k = 0; k < width; ++k) {
    h[static_cast<std::size_t>(k)] = by.at("state", 0, k);
    c[static_cast<std::size_t>(k)] = by.at("cell", 0, k);
  }
  nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  auto& context = trial.context();
  nn::SequenceOf<std::remove_reference_t<decltype(context)>> const in{learned(context, trial.model.x), batch.layout()};
  auto const made = trial.model.one.forward_with_cell(context, in, learned(context, trial.model.state),
                                                      learned(context, trial.model.cell));
  for (Index t = 0; t < 4; ++t) {
    std::vector<double> x;
    for (Index i = 0; i < inputs; ++i) x.push_back(by.at("x", t, i));
    step(trial.model.one, by, x.data(), h, c);
  }
  for (Index k = 0; k < width; ++k)
    CHECK(made.cell.value(0, k) == doctest::Approx(c[static_cast<std::size_t>(k)]).epsilon(1e-12));
}

namespace {

/// A recurrent layer that begins from its own input.
template <class Layer>
struct FromInput {
  nn::Parameter x{{2, width}, nn::Initializer::normal(1)};
  Layer one{width, width};
  void visit(auto&& each) { each("x", x), each("one", one); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const in{learned(context, x), batch.layout()};
    auto const y = [&] {
      if constexpr (std::is_same_v<Layer, nn::LSTM>)
        return one.forward(context, in, in.tokens, in.tokens);
      else
        return one.forward(context, in, in.tokens);
    }();
    return lockstep_test::irregular_loss(context, y.tokens, &y.layout);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("one variable may be the input of a recurrent layer and its first states", Layer, nn::LSTM, nn::GRU,
                   nn::RNN) {
  TokenBatch const batch({1, 1}, 1, 11);
  auto const result = check_model(FromInput<Layer>{}, batch);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE_TEMPLATE("bits do not depend on threads", Layer, nn::LSTM, nn::GRU, nn::RNN) {
  TokenBatch const batch({31, 1, 0, 7, 30, 12, 31}, 31, 11);
  for (auto const direction : {Direction::forward, Direction::backward}) {
    Trial<Model<Layer>, float> one(Model<Layer>(batch, direction), 1);
    auto const loss = one.step(batch);
    CHECK(one.evaluate(batch).sum == loss.sum);
    for (int const threads : {2, 4}) {
      Trial<Model<Layer>, float> several(Model<Layer>(batch, direction), threads);
      CHECK(several.step(batch).sum == loss.sum);
      CHECK(std::memcmp(several.gradients.data(), one.gradients.data(), one.gradients.size() * sizeof(float)) == 0);
    }
  }
}

namespace {

/// A gated recurrent unit from other layers, as torch.nn.GRUCell.
class Composed {
 public:
  void visit(auto&& each) {
    each("reset", reset_), each("update", update_), each("input", input_), each("state", state_);
  }
  template <class Context>
  auto forward(Context& context, nn::VariableOf<Context, 2> x, nn::VariableOf<Context, 2> h) const {
    auto const both = nn::concatenate_channels(context, x, h);
    auto const reset = nn::sigmoid(context, reset_.forward(context, both));
    auto const update = nn::sigmoid(context, update_.forward(context, both));
    auto const remembered = nn::multiply(context, reset, state_.forward(context, h));
    auto const fresh = nn::tanh(context, nn::add(context, input_.forward(context, x), remembered));
    return nn::add(context, fresh, nn::multiply(context, update, nn::subtract(context, h, fresh)));
  }

 private:
  nn::Linear reset_{inputs + width, width}, update_{inputs + width, width}, input_{inputs, width}, state_{width, width};
};

/// Time series of numbers; the first one's sign must be remembered.
struct Series {
  static constexpr Index steps = 6;
  Index rows;
  std::vector<float> numbers = lockstep_test::values<float>(steps * rows * inputs, 1);  // [rows, steps, inputs]
  std::vector<std::int32_t> labels{};
  std::vector<Index> positions = std::vector<Index>(static_cast<std::size_t>(rows));

  explicit Series(Index count) : rows(count) {
    for (Index r = 0; r < rows; ++r) labels.push_back(numbers[static_cast<std::size_t>(r * steps * inputs)] > 0);
  }
  [[nodiscard]] TensorView<float const, 2, HostSpace> all() const { return {numbers.data(), {rows * steps, inputs}}; }
  [[nodiscard]] nn::SequenceLayout<HostSpace> layout() const {
    return nn::SequenceLayout<HostSpace>::padded(steps, {}, {positions.data(), {rows}});
  }
  [[nodiscard]] TensorView<std::int32_t const, 1, HostSpace> classes() const { return {labels.data(), {rows}}; }
};

template <class Layer>
struct Remembers {
  Layer layer{inputs, width};
  nn::Linear head{width, 2};
  void visit(auto&& each) { each("layer", layer), each("head", head); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Series const& batch) const {
    nn::SequenceOf<Context> const x{context.input(batch.all()), batch.layout()};
    auto const state = nn::last_token(context, layer.forward(context, x));
    return nn::cross_entropy(context, head.forward(context, state), batch.classes());
  }
};
/// One time series, step by step, by the layer and by a composition of other layers.
struct BothWays {
  Composed composed;
  void visit(auto&& each) { composed.visit(each); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Series const& batch) const {
    auto const zero = context.template temporary<typename Context::Scalar>(Extents<2>{batch.rows, width});
    std::fill_n(zero.data, zero.size(), typename Context::Scalar{0});
    auto state = context.input(zero);
    for (Index t = 0; t < Series::steps; ++t) {
      auto const x = context.template temporary<float>(Extents<2>{batch.rows, inputs});
      for (Index r = 0; r < batch.rows; ++r)
        std::copy_n(batch.all().data + (r * Series::steps + t) * inputs, inputs, x.data + r * inputs);
      state = composed.forward(context, context.input(x), state);
    }
    return lockstep_test::irregular_loss(context, state);
  }
};
struct OneLayer {
  nn::GRU layer{inputs, width};
  void visit(auto&& each) { layer.visit(each); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Series const& batch) const {
    nn::SequenceOf<Context> const x{context.input(batch.all()), batch.layout()};
    return lockstep_test::irregular_loss(context, nn::last_token(context, layer.forward(context, x)));
  }
};

}  // namespace

TEST_CASE("a GRU and its composition from other layers have equal loss and gradients") {
  Series const batch(4);
  Trial<BothWays, double> parts((BothWays()));
  Trial<OneLayer, double> whole((OneLayer()));
  auto const offset = [](auto const& trial, std::string const& name) {
    for (auto const& entry : trial.layout.entries())
      if (entry.name == name) return entry.offset;
    FAIL(name);
    return Index{0};
  };
  // The layer's two matrices of three gates are four linear maps there.
  auto const each_pair = [&](auto const& f) {
    for (Index c = 0; c < width; ++c) {
      for (Index g = 0; g < 3; ++g) {
        auto const row = g * width + c;
        auto const* const of_x = g == 0 ? "reset" : g == 1 ? "update" : "input";
        auto const* const of_state = g == 2 ? "state" : of_x;
        auto const columns = g < 2 ? inputs + width : inputs;
        for (Index i = 0; i < inputs; ++i)
          f(offset(whole, "input.weight") + row * inputs + i,
            offset(parts, of_x + std::string(".weight")) + c * columns + i);
        for (Index i = 0; i < width; ++i)
          f(offset(whole, "hidden.weight") + row * width + i,
            offset(parts, of_state + std::string(".weight")) + (g < 2 ? c * columns + inputs : c * width) + i);
        f(offset(whole, "input.bias") + row, offset(parts, of_x + std::string(".bias")) + c);
        if (g == 2) f(offset(whole, "hidden.bias") + row, offset(parts, "state.bias") + c);
      }
    }
  };
  for (Index row = 0; row < 2 * width; ++row)  // one bias in the one, their sum in the other
    whole.values[static_cast<std::size_t>(offset(whole, "hidden.bias") + row)] = 0;
  each_pair([&](Index to, Index from) {
    whole.values[static_cast<std::size_t>(to)] = parts.values[static_cast<std::size_t>(from)];
  });
  CHECK(whole.step(batch).sum == doctest::Approx(parts.step(batch).sum).epsilon(1e-12));
  each_pair([&](Index a, Index b) {
    CHECK(whole.gradients[static_cast<std::size_t>(a)] ==
          doctest::Approx(parts.gradients[static_cast<std::size_t>(b)]).epsilon(1e-10));
  });
}

TEST_CASE_TEMPLATE("it learns to remember, without allocations", Layer, nn::LSTM, nn::GRU) {
  Series const batch(32);
  Trial<Remembers<Layer>, float> trial((Remembers<Layer>()));
  auto const before = trial.evaluate(batch);
  trial.step(batch), trial.step(batch);
  auto const mallocs = lockstep_test::mallocs.load();
  for (int step = 0; step < 300; ++step) {
    auto const loss = trial.step(batch);
    for (std::size_t i = 0; i < trial.values.size(); ++i)
      trial.values[i] -= 2 * trial.gradients[i] / static_cast<float>(loss.weight);
  }
  auto const counted = lockstep_test::mallocs - mallocs;
  CHECK(counted == 0);
  auto const after = trial.evaluate(batch);
  CAPTURE(after.sum / after.weight);
  CHECK(after.sum < before.sum / 5);
}

TEST_CASE("invalid inputs are refused") {
  CHECK_THROWS_WITH_AS(nn::LSTM(0, 5), "LSTM: 0 inputs and the width 5; both must be at least 1", ConfigError);
  CHECK_THROWS_WITH_AS(nn::GRU(3, 0), "GRU: 3 inputs and the width 0; both must be at least 1", ConfigError);
  TokenBatch const batch({2}, 2, 11);
  Trial<Model<nn::GRU>, float> trial(Model<nn::GRU>(batch, Direction::forward));
  nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<float> const numbers(8);
  nn::Sequence<float, HostSpace> const x{
      trial.context().input(TensorView<float const, 2, HostSpace>{numbers.data(), {2, 4}}), batch.layout()};
  CHECK_THROWS_WITH_AS(static_cast<void>(trial.model.one.forward(trial.context(), x)),
                       "GRU one: the input is [2, 4] and needs 3 channels", ShapeError);
  nn::Sequence<float, HostSpace> const fits{
      trial.context().input(TensorView<float const, 2, HostSpace>{numbers.data(), {2, 3}}), batch.layout()};
  auto const state = trial.context().input(TensorView<float const, 2, HostSpace>{numbers.data(), {2, 4}});
  CHECK_THROWS_WITH_AS(static_cast<void>(trial.model.one.forward(trial.context(), fits, state)),
                       "GRU one: the first state is [2, 4] and must be [1, 5], a row for each sequence", ShapeError);
}
