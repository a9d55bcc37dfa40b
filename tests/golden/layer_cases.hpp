// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/normalization/rms_norm.hpp>
#include <lockstep/nn/recurrent/recurrent.hpp>
#include <lockstep/nn/transformer/feed_forward.hpp>
#include <lockstep/nn/transformer/gated_feed_forward.hpp>
#include <lockstep/nn/transformer/transformer_decoder_layer.hpp>
#include <lockstep/nn/transformer/transformer_encoder_layer.hpp>

#include "golden/golden.hpp"

/// The layers of layers.json and recurrent.json, on any device.
namespace golden {
using namespace lockstep;

inline constexpr Index width = 6, heads = 2, inner = 7;

// Number of roundings on the longest path from an input to a compared number, each of at most half a unit of the
// largest number of the case: one for each term of a sum and its product. Sums have 6 or 7 terms across the width, 5
// over the tokens of a sequence and 15 over the rows of a weight's gradient. Backward repeats the roundings of forward.
inline constexpr double linear = 8;                             // 5 inputs, a bias, and the addition to a gradient
inline constexpr double gelu = 16;                              // erf, exp, and their products
inline constexpr double norm = 48;                              // two means forward and two backward: 4 x 6, twice
inline constexpr double feed_forward = 2 * linear + gelu + 16;  // and the rows
// four linear maps, scores and softmax twice, and the rows
inline constexpr double attention = 4 * linear + 2 * (5 + 8) + 16;
inline constexpr double rotary = 4 * 2 + 2 * 6;  // linear maps of 8 channels, not 6, and rotations of queries and keys
inline constexpr double encoder = 2 * (attention + feed_forward + 2 * norm);
inline constexpr double decoder = encoder + 2 * (attention + norm);
// of five steps, with two linear maps and four gates
inline constexpr double recurrent = 2 * 5 * (2 * linear + 2 * gelu);

/// Runs cases on the host. A place copies numbers to a device, owns them, and reads them back.
class OnHost {
 public:
  using Space = HostSpace;
  [[nodiscard]] memory::Stream<HostSpace> stream() noexcept { return memory::Stream<HostSpace>(pool_); }
  template <class T>
  [[nodiscard]] T* put(std::vector<T> const& values) {
    auto const copy = std::make_shared<std::vector<T>>(values);
    kept_.push_back(copy);
    return copy->data();
  }
  template <class T>
  [[nodiscard]] std::vector<T> get(T const* from, Index count) const {
    return {from, from + count};
  }

 private:
  ThreadPool pool_{1};
  std::vector<std::shared_ptr<void>> kept_;
};

/// A batch of padded sequences from the file, or rows without sequences.
template <class Place>
nn::SequenceLayout<typename Place::Space> layout_of(Place& place, json::Value const& expected,
                                                    std::string const& prefix, json::Value const* tensor) {
  using Layout = nn::SequenceLayout<typename Place::Space>;
  if (auto const* given = expected.find(prefix + "lengths")) {
    auto const lengths = numbers<std::int32_t>(*given);
    auto const rows = std::ssize(lengths);
    return Layout::padded(expected.at(prefix + "length").integer(), {place.put(lengths), {rows}},
                          {place.put(std::vector<Index>(lengths.size(), 0)), {rows}});
  }
  return tensor ? Layout::vectors(shape(*tensor)[0]) : Layout{};
}

template <class Space>
struct Ids {
  TensorView<std::int32_t const, 2, Space> values;
  TensorView<std::int32_t const, 1, Space> lengths;
};

/// A parameter as an activation, so that its gradient is the gradient of a layer's input.
template <class Context>
nn::VariableOf<Context, 2> learned(Context& context, nn::Parameter const& p) {
  using Scalar = typename Context::Scalar;
  using Real = typename Context::Real;
  using Convert = kernel::Convert<typename Context::Space>;
  auto const from = context.template value<2>(p);
  auto const x = context.template variable<2>(from.extent);
  Extents<1> const flat{from.size()};
  Convert::template run<Scalar, Real>(context.stream(), from.reshape(flat), x.value.reshape(flat));
  context.on_backward(x, std::tie(p), [&p, x, flat](Context& c) {
    auto const to = c.gradient(p);
    Convert::template run<Real, Scalar>(c.stream(), x.gradient().reshape(flat), {to.data, flat}, to.write);
  });
  return x;
}

/// The layer and its inputs, which are parameters, so that their gradients can be compared too.
template <class Layer>
struct Model {
  Layer layer;
  std::vector<std::pair<std::string, nn::Parameter>> inputs;
  void visit(auto&& each) {
    for (auto& [name, input] : inputs) each(name, input);
    layer.visit(each);
  }
};

/// `apply(context, layer, sequences, layout)` returns a Sequence.
template <class T, class Place, class Layer, class Apply>
void check(Place& place, json::Value const& expected, double roundings, Layer layer, Apply const& apply) {
  using Space = typename Place::Space;
  auto const& values = expected.at("values");
  Model<Layer> model{std::move(layer), {}};
  std::vector<std::size_t> widths;
  for (std::string const name : {"input", "memory"})
    if (auto const* tensor = values.find(name)) {
      auto const extents = shape(*tensor);
      auto const slots = std::ssize(data<double>(*tensor)) / extents.back();
      model.inputs.push_back({name, nn::Parameter{{slots, extents.back()}, {}}});
    }
  auto const rows = layout_of(place, expected, "", values.find("input"));
  auto const memory = layout_of(place, expected, "memory_", nullptr);
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.entries().size() == values.object().size());
  using Real = Accumulate<T>;
  std::vector<Real> arena(static_cast<std::size_t>(layout.size()));
  for (auto const& entry : layout.entries()) {
    auto const numbers = data<Real>(values.at(entry.name));
    REQUIRE(std::ssize(numbers) == entry.size);
    std::copy(numbers.begin(), numbers.end(), arena.begin() + entry.offset);
  }
  nn::Context<T, Space> context(place.stream());
  auto* const gradients_there = place.put(std::vector<Real>(arena.size()));
  context.parameters().bind(place.put(arena), gradients_there, layout.entries().size());
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  std::vector<nn::Sequence<T, Space>> sequences;
  for (auto const& [name, input] : model.inputs)
    sequences.push_back({learned(context, input), name == "input" ? rows : memory});
  nn::Sequence<T, Space> const y = apply(context, std::as_const(model.layer), sequences, rows);
  auto const output = place.get(y.tokens.value.data, y.tokens.value.size());
  auto const dy = context.gradient(y.tokens);
  auto const weights = data<Real>(expected.at("weights"));
  Extents<1> const flat{std::ssize(weights)};
  REQUIRE(flat[0] == y.tokens.value.size());
  kernel::Convert<Space>::template run<T, Real>(context.stream(), {place.put(weights), flat}, {dy.data, flat});
  nn::Pass(context).backward({});
  auto const gradients = place.get(gradients_there, layout.size());

  OnHost here;
  auto const of_y = layout_of(here, expected, "", values.find("input"));
  auto const counts = [&](std::size_t i) { return of_y.is_token(static_cast<Index>(i) / y.width()); };
  if constexpr (std::is_same_v<T, bfloat16>) {
    MeanDifference outputs, all;
    outputs.add(output.data(), data<double>(expected.at("output")), counts);
    for (auto const& entry : layout.entries())
      all.add(gradients.data() + entry.offset, data<double>(expected.at("gradients").at(entry.name)));
    auto const& theirs = expected.at("bfloat16");
    CHECK(all.value() <= of_pytorchs * theirs.at("gradients").number());
    // Both outputs are rounded equally often, or ours less often. After many roundings chance decides whose few numbers
    // have larger errors: for whole blocks only the gradients, a hundred times as many numbers, are compared.
    bool const block = roundings >= encoder;
    CHECK((block || outputs.value() <= of_pytorchs * theirs.at("output").number()));
  } else {
    double const bound = roundings * std::max(1.0, largest(expected));
    auto off = difference(output.data(), data<double>(expected.at("output")), counts);
    for (auto const& entry : layout.entries())
      off = std::max(
          off, difference(gradients.data() + entry.offset, data<double>(expected.at("gradients").at(entry.name))));
    CHECK(off <= bound);
  }
}

struct Gelu {
  void visit(auto&&) {}
};

/// Returns the activation that the name of a feed-forward part ends in.
inline nn::Activation activation_of(std::string const& name) {
  return name.ends_with("_gelu_tanh") ? nn::Activation::gelu_tanh
         : name.ends_with("_silu")    ? nn::Activation::silu
                                      : nn::Activation::gelu;
}

/// Runs all cases of these files, with activations stored as T.
template <class T, class Place>
void check_layers(Place& place) {
  using Layout = nn::SequenceLayout<typename Place::Space>;
  auto const one = [](auto& context, auto const& layer, auto const& x, Layout const&) {
    return layer.forward(context, x[0]);
  };
  auto const two = [](auto& context, auto const& layer, auto const& x, Layout const&) {
    return layer.forward(context, x[0], x[1]);
  };
  int checked = 0;
  auto const check_case = [&](json::Value const& expected) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    bool const first = name.ends_with("norm_first");
    if (name == "linear") {
      check<T>(place, expected, linear, nn::Linear(5, 3), one);
    } else if (name == "layer_norm") {
      check<T>(place, expected, norm, nn::LayerNorm(width), one);
    } else if (name == "rms_norm") {
      check<T>(place, expected, norm, nn::RMSNorm(width, 1e-6), one);
    } else if (name == "gelu") {
      check<T>(place, expected, gelu, Gelu{},
               [](auto& c, auto const&, auto const& x, Layout const&) { return nn::gelu(c, x[0]); });
    } else if (name.starts_with("feed_forward")) {
      check<T>(place, expected, feed_forward, nn::FeedForward(width, inner, 0, activation_of(name)), one);
    } else if (name.starts_with("gated_feed_forward")) {
      check<T>(place, expected, feed_forward + linear,
               nn::GatedFeedForward({.width = width, .inner = inner, .activation = activation_of(name)}), one);
    } else if (name == "attention" || name == "causal_attention") {
      check<T>(place, expected, attention,
               nn::MultiHeadAttention({.width = width, .heads = heads, .causal = name == "causal_attention"}), one);
    } else if (name == "cross_attention") {
      check<T>(place, expected, attention, nn::MultiHeadAttention({.width = width, .heads = heads}), two);
    } else if (name.starts_with("encoder_layer")) {
      check<T>(
          place, expected, encoder,
          nn::TransformerEncoderLayer({.width = width, .heads = heads, .feed_forward = inner, .norm_first = first}),
          one);
    } else if (name.starts_with("decoder_layer")) {
      check<T>(
          place, expected, decoder,
          nn::TransformerDecoderLayer({.width = width, .heads = heads, .feed_forward = inner, .norm_first = first}),
          two);
    } else if (name.starts_with("embedding")) {
      auto const* const ids = place.put(numbers<std::int32_t>(expected.at("ids")));
      auto const with = name == "embedding_norm" ? nn::Norm::layer : nn::Norm::none;
      check<T>(place, expected, 4 + norm,
               nn::FusedEmbedding({.vocabulary = 7, .length = 6, .width = width, .norm = with}),
               [&](auto& context, auto const& layer, auto const&, Layout const& layout) {
                 Ids<typename Place::Space> const column{{ids, {layout.rows, layout.length}}, layout.lengths};
                 return layer.forward(context, column, layout.positions);
               });
    } else if (name.starts_with("rotary")) {
      Index const key_heads = name == "rotary" ? 0 : 1;
      check<T>(
          place, expected, attention + rotary,
          nn::MultiHeadAttention({.width = 8, .heads = 2, .causal = true, .rotary_base = 100, .key_heads = key_heads}),
          one);
    } else if (name.starts_with("lstm") || name.starts_with("gru")) {
      auto const direction = name.ends_with("backward") ? nn::Direction::backward : nn::Direction::forward;
      name.starts_with("lstm") ? check<T>(place, expected, recurrent, nn::LSTM(width - 1, width, direction), one)
                               : check<T>(place, expected, recurrent, nn::GRU(width - 1, width, direction), one);
    } else {
      FAIL("unknown layer");
    }
  };
  for (auto const* const name : {"layers", "recurrent", "rotary", "activations"}) {
    auto const file = load(name);
    for (auto const& expected : file.at("cases").array()) check_case(expected);
  }
  CHECK(checked == 25);
}

}  // namespace golden
