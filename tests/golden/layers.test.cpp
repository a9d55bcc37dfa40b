// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/attention.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/feed_forward.hpp>
#include <lockstep/nn/fused_embedding.hpp>
#include <lockstep/nn/gated_feed_forward.hpp>
#include <lockstep/nn/gelu.hpp>
#include <lockstep/nn/layer_norm.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/nn/rms_norm.hpp>
#include <lockstep/nn/transformer_decoder_layer.hpp>
#include <lockstep/nn/transformer_encoder_layer.hpp>

#include "golden/golden.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using golden::data;
using Layout = nn::SequenceLayout<HostSpace>;

namespace {

constexpr Index width = 6, heads = 2, inner = 7;

// Roundings on the longest way from an input to a number that is compared, each of at most half a unit of the largest
// number of the case: one for each term of a sum and its product. Sums have 6 or 7 terms across the width, 5 over the
// tokens of a sequence and 15 over the rows of a weight's gradient; backward takes forward's way again.
constexpr double linear = 8;                                 // 5 inputs, a bias, and what is added to a gradient
constexpr double gelu = 16;                                  // erf, exp, and the products around them
constexpr double norm = 48;                                  // two means forward and two backward: 4 x 6, twice
constexpr double feed_forward = 2 * linear + gelu + 16;      // and the rows
constexpr double attention = 4 * linear + 2 * (5 + 8) + 16;  // four maps, scores and softmax twice, and the rows
constexpr double encoder = 2 * (attention + feed_forward + 2 * norm);
constexpr double decoder = encoder + 2 * (attention + norm);

/// A batch of padded sequences of the file, or rows without any.
struct Rows {
  std::vector<std::int32_t> lengths;
  std::vector<Index> positions;
  Layout layout;

  Rows(json::Value const& expected, std::string const& prefix, json::Value const* tensor) {
    if (auto const* given = expected.find(prefix + "lengths")) {
      lengths = golden::numbers<std::int32_t>(*given);
      positions.assign(lengths.size(), 0);
      auto const rows = std::ssize(lengths);
      layout = Layout::padded(expected.at(prefix + "length").integer(), {lengths.data(), {rows}},
                              {positions.data(), {rows}});
    } else if (tensor) {
      layout = Layout::vectors(golden::shape(*tensor)[0]);
    }
  }
  Rows(Rows const&) = delete;
  Rows& operator=(Rows const&) = delete;
};

struct Ids {
  TensorView<std::int32_t const, 2, HostSpace> values;
  TensorView<std::int32_t const, 1, HostSpace> lengths;
};

/// The layer beside its inputs, which are parameters, so that their gradients can be compared too.
template <class Layer>
struct Model {
  Layer layer;
  std::vector<std::pair<std::string, nn::Parameter>> inputs;
  void visit(auto&& each) {
    for (auto& [name, input] : inputs) each(name, input);
    layer.visit(each);
  }
};

/// `apply(context, layer, sequences, rows, expected)` returns a Sequence.
template <class T, class Layer, class Apply>
void check(json::Value const& expected, double roundings, Layer layer, Apply const& apply) {
  auto const& values = expected.at("values");
  Model<Layer> model{std::move(layer), {}};
  std::vector<std::size_t> widths;
  for (std::string const name : {"input", "memory"})
    if (auto const* tensor = values.find(name)) {
      auto const extents = golden::shape(*tensor);
      auto const slots = std::ssize(data<double>(*tensor)) / extents.back();
      model.inputs.push_back({name, nn::Parameter{{slots, extents.back()}, {}}});
    }
  Rows const rows(expected, "", values.find("input")), memory(expected, "memory_", nullptr);
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.entries().size() == values.object().size());
  using Real = Accumulate<T>;
  std::vector<Real> arena(static_cast<std::size_t>(layout.size())), gradients(arena.size());
  for (auto const& entry : layout.entries()) {
    auto const numbers = data<Real>(values.at(entry.name));
    REQUIRE(std::ssize(numbers) == entry.size);
    std::copy(numbers.begin(), numbers.end(), arena.begin() + entry.offset);
  }
  ThreadPool pool(1);
  nn::Context<T, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.bind(arena.data(), gradients.data(), layout.entries().size());
  context.begin_step();
  context.begin_micro_batch(nn::Mode::training, 1);
  std::vector<nn::Sequence<T, HostSpace>> sequences;
  for (auto const& [name, input] : model.inputs)
    sequences.push_back({lockstep_test::learned(context, input), name == "input" ? rows.layout : memory.layout});
  nn::Sequence<T, HostSpace> const y = apply(context, std::as_const(model.layer), sequences, rows);
  std::vector<T> const output(y.tokens.value.data, y.tokens.value.data + y.tokens.value.size());
  auto const dy = context.gradient(y.tokens);
  auto const weights = data<Real>(expected.at("weights"));
  REQUIRE(std::ssize(weights) == y.tokens.value.size());
  std::transform(weights.begin(), weights.end(), dy.data, [](Real w) { return static_cast<T>(w); });
  context.backward({});

  auto const counts = [&](std::size_t i) { return y.layout.is_token(static_cast<Index>(i) / y.width()); };
  if constexpr (std::is_same_v<T, bfloat16>) {
    golden::MeanDifference outputs, all;
    outputs.add(output.data(), data<double>(expected.at("output")), counts);
    for (auto const& entry : layout.entries())
      all.add(gradients.data() + entry.offset, data<double>(expected.at("gradients").at(entry.name)));
    auto const& theirs = expected.at("bfloat16");
    CHECK(all.value() <= golden::of_pytorchs * theirs.at("gradients").number());
    // The two outputs are rounded in the same number of places, or ours in fewer. After many of them it is chance whose
    // few numbers come out further off: of whole blocks only the gradients, a hundred times as many, are compared.
    bool const block = roundings >= encoder;
    CHECK((block || outputs.value() <= golden::of_pytorchs * theirs.at("output").number()));
    return;
  }
  double const bound = roundings * std::max(1.0, golden::largest(expected));
  auto off = golden::difference(output.data(), data<double>(expected.at("output")), counts);
  for (auto const& entry : layout.entries())
    off = std::max(off, golden::difference(gradients.data() + entry.offset,
                                           data<double>(expected.at("gradients").at(entry.name))));
  CHECK(off <= bound);
}

struct Gelu {
  void visit(auto&&) {}
};

}  // namespace

TEST_CASE_TEMPLATE("outputs and gradients of layers are PyTorch's", T, double, float, bfloat16) {
  auto const file = golden::load("layers");
  auto const one = [](auto& context, auto const& layer, auto const& x, Rows const&) {
    return layer.forward(context, x[0]);
  };
  auto const two = [](auto& context, auto const& layer, auto const& x, Rows const&) {
    return layer.forward(context, x[0], x[1]);
  };
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    ++checked;
    bool const first = name.ends_with("norm_first");
    if (name == "linear") {
      check<T>(expected, linear, nn::Linear(5, 3), one);
    } else if (name == "layer_norm") {
      check<T>(expected, norm, nn::LayerNorm(width), one);
    } else if (name == "rms_norm") {
      check<T>(expected, norm, nn::RMSNorm(width, 1e-6), one);
    } else if (name == "gelu") {
      check<T>(expected, gelu, Gelu{},
               [](auto& c, auto const&, auto const& x, Rows const&) { return nn::gelu(c, x[0]); });
    } else if (name == "feed_forward") {
      check<T>(expected, feed_forward, nn::FeedForward(width, inner), one);
    } else if (name == "gated_feed_forward") {
      check<T>(expected, feed_forward + linear, nn::GatedFeedForward({.width = width, .inner = inner}), one);
    } else if (name == "attention" || name == "causal_attention") {
      check<T>(expected, attention,
               nn::MultiHeadAttention({.width = width, .heads = heads, .causal = name == "causal_attention"}), one);
    } else if (name == "cross_attention") {
      check<T>(expected, attention, nn::MultiHeadAttention({.width = width, .heads = heads}), two);
    } else if (name.starts_with("encoder_layer")) {
      check<T>(
          expected, encoder,
          nn::TransformerEncoderLayer({.width = width, .heads = heads, .feed_forward = inner, .norm_first = first}),
          one);
    } else if (name.starts_with("decoder_layer")) {
      check<T>(
          expected, decoder,
          nn::TransformerDecoderLayer({.width = width, .heads = heads, .feed_forward = inner, .norm_first = first}),
          two);
    } else if (name.starts_with("embedding")) {
      auto const ids = golden::numbers<std::int32_t>(expected.at("ids"));
      auto const with = name == "embedding_norm" ? nn::Norm::layer : nn::Norm::none;
      check<T>(expected, 4 + norm, nn::FusedEmbedding({.vocabulary = 7, .length = 6, .width = width, .norm = with}),
               [&](auto& context, auto const& layer, auto const&, Rows const& rows) {
                 auto const& layout = rows.layout;
                 Ids const column{{ids.data(), {layout.rows, layout.length}}, layout.lengths};
                 return layer.forward(context, column, layout.positions);
               });
    } else {
      FAIL("no such layer");
    }
  }
  CHECK(checked == 15);
}
