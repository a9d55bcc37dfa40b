// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/recompute.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/nn/transformer/transformer_encoder_layer.hpp>

#include "malloc_count.hpp"
#include "nn/layer_check.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

/// The block without recomputation.
template <class Block>
struct Plain {
  Block block;
  void visit(auto&& each) { block.visit(each); }
  auto forward(auto& context, auto const&... x) const { return block.forward(context, x...); }
};

/// Two blocks, recomputed or not, as `Wrap` says; dropout before, between and after, so that random keys must continue
/// equally.
template <template <class> class Wrap>
class Blocks {
  using Layer = nn::TransformerEncoderLayer;

 public:
  Blocks() : Blocks(Layer({.width = 8, .heads = 2, .feed_forward = 12, .dropout = 0.25})) {}
  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
  }
  auto forward(auto& context, auto const& x) const {
    auto const one = first_.forward(context, dropout_.forward(context, x));
    return dropout_.forward(context, second_.forward(context, nn::add(context, dropout_.forward(context, one), x)));
  }

 private:
  explicit Blocks(Layer const& layer) : first_{layer}, second_{Wrap<Layer>{layer}} {}

  Wrap<Layer> first_;
  Wrap<Wrap<Layer>> second_;
  nn::Dropout dropout_{0.25};
};

auto const apply = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
layer_check::Batch const batch{.rows = 4, .length = 5, .lengths = {5, 0, 1, 3}};

struct Nothing {
  void visit(auto&&) {}
  auto forward(auto&, auto const& x) const { return x; }
};

struct Unused {
  nn::Linear linear{4, 4};
  void visit(auto&& each) { linear.visit(each); }
  auto forward(auto& context, auto const& x) const {
    static_cast<void>(linear.forward(context, x));
    return x;
  }
};

/// One linear layer, used before, inside (twice, nested) and after the recomputed block; `outside` is not in the block.
struct Tied {
  nn::Parameter input{{3, 6}, nn::Initializer::normal(1)};
  nn::Linear linear{6, 6}, outside{6, 6};
  bool recomputes = true, used = true;
  void visit(auto&& each) { each("input", input), each("linear", linear), each("outside", outside); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, int) const {
    auto const x = linear.forward(context, lockstep_test::learned(context, input));
    auto const inside = [this, x](Context& c) {
      auto const y = linear.forward(c, x);
      auto const deeper = [this, y](Context& d) { return linear.forward(d, y); };
      return nn::add(c, recomputes ? c.recompute(deeper, y) : deeper(c), x);
    };
    auto const y = recomputes ? context.recompute(inside, x) : inside(context);
    auto const last = used ? nn::add(context, linear.forward(context, y), x) : x;
    return lockstep_test::irregular_loss(context, outside.forward(context, last));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("Recompute: results and gradients are bit-identical, including dropout", T, float, double) {
  auto const plain = layer_check::run<T>(Blocks<Plain>{}, 8, batch, apply, 1, 2);
  for (int threads : {1, 2}) CHECK(plain == layer_check::run<T>(Blocks<nn::Recompute>{}, 8, batch, apply, threads, 2));
  CHECK(layer_check::evaluate<T>(Blocks<Plain>{}, 8, batch, apply) ==
        layer_check::evaluate<T>(Blocks<nn::Recompute>{}, 8, batch, apply));
  layer_check::Batch const none{.rows = 0, .length = 5};
  CHECK(layer_check::run<T>(Blocks<nn::Recompute>{}, 8, none, apply, 1) ==
        layer_check::run<T>(Blocks<Plain>{}, 8, none, apply, 1));
}

TEST_CASE("Recompute: gradients are exact, and names are unchanged") {
  auto const result = layer_check::check(Blocks<nn::Recompute>{}, 8, batch, apply);
  CAPTURE(result.where);
  CHECK(result.ok());
  Blocks<nn::Recompute> wrapped;
  Blocks<Plain> plain;
  auto const with = nn::ParameterLayout::of(wrapped), without = nn::ParameterLayout::of(plain);
  REQUIRE(with.entries().size() == without.entries().size());
  for (std::size_t i = 0; i < with.entries().size(); ++i) CHECK(with.entries()[i].name == without.entries()[i].name);
}

TEST_CASE("Recompute: a parameter used inside and outside is ready once, when its gradient is complete") {
  for (bool used : {true, false}) {
    Trial<Tied, double> trial({.recomputes = true, .used = used}), plain({.recomputes = false, .used = used});
    plain.step(0);
    auto& context = trial.context();
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
    CHECK(trial.model.forward(context, 0).sum != 0);
    struct Heard {
      Trial<Tied, double>* trial;
      std::vector<Index> offsets{};
      std::vector<double> gradients{};
    } recorder{&trial};
    nn::Pass(context).backward({[](void* self, Index offset, Index) {
                                  auto& h = *static_cast<Heard*>(self);
                                  h.offsets.push_back(offset);
                                  h.gradients.push_back(h.trial->gradients[static_cast<std::size_t>(offset)]);
                                },
                                &recorder});
    CHECK(trial.gradients == plain.gradients);
    CHECK(recorder.offsets.size() == trial.layout.entries().size());
    for (std::size_t i = 0; i < recorder.offsets.size(); ++i) {
      CHECK(recorder.gradients[i] == trial.gradients[static_cast<std::size_t>(recorder.offsets[i])]);
      for (std::size_t j = 0; j < i; ++j) CHECK(recorder.offsets[j] != recorder.offsets[i]);
    }
  }
}

namespace {
/// A wide layer below a recomputed narrow one: backward of the wide one needs much memory after the other's.
struct WideBelow {
  nn::Parameter input{{3, 64}, nn::Initializer::normal(1)};
  nn::Linear wide{64, 6}, narrow{6, 6};
  bool recomputes, nested;
  void visit(auto&& each) { each("input", input), each("wide", wide), each("narrow", narrow); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, int) const {
    auto const x = wide.forward(context, lockstep_test::learned(context, input));
    auto const block = [this, x](Context& c) {
      if (!nested) return narrow.forward(c, x);
      auto const y = narrow.forward(c, x);
      auto const inner = [this, x, y](Context& d) { return nn::add(d, narrow.forward(d, y), x); };
      return recomputes ? c.recompute(inner, y, x) : inner(c);
    };
    return lockstep_test::irregular_loss(context, recomputes ? context.recompute(block, x) : block(context));
  }
};
}  // namespace

TEST_CASE("Recompute: the gradient of a block's input outlives the block's memory") {
  for (bool nested : {false, true}) {
    Trial<WideBelow, double> trial({.recomputes = true, .nested = nested}),
        plain({.recomputes = false, .nested = nested});
    trial.step(0);
    plain.step(0);
    CHECK(trial.gradients == plain.gradients);
  }
}

TEST_CASE("Recompute: a block that returns its input is the identity, whatever else it computes") {
  auto const pass = layer_check::run<double>(Nothing{}, 4, batch, apply, 1);
  CHECK(pass == layer_check::run<double>(nn::Recompute{Nothing{}}, 4, batch, apply, 1));
  auto const twice = [](auto& context, auto const& layer, auto const& x) {
    return nn::add(context, x, layer.forward(context, x));
  };
  CHECK(layer_check::run<double>(nn::Recompute{Unused{}}, 4, batch, twice, 1) ==
        layer_check::run<double>(Plain<Unused>{Unused{}}, 4, batch, twice, 1));
}

namespace {

/// Eight layers in sequence.
template <template <class> class Wrap>
struct Deep {
  std::vector<Wrap<nn::TransformerEncoderLayer>> layers = std::vector<Wrap<nn::TransformerEncoderLayer>>(
      8, Wrap<nn::TransformerEncoderLayer>{
             nn::TransformerEncoderLayer{{.width = 64, .heads = 4, .feed_forward = 128, .dropout = 0.1}}});
  nn::Parameter input{{8 * 40, 64}, nn::Initializer::normal(1)};
  void visit(auto&& each) {
    each("input", input);
    for (std::size_t i = 0; i < layers.size(); ++i) each(std::to_string(i), layers[i]);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& tokens) const {
    nn::SequenceOf<Context> x{lockstep_test::learned(context, input), tokens.layout()};
    for (auto const& layer : layers) x = layer.forward(context, x);
    return lockstep_test::irregular_loss(context, x.tokens);
  }
};

}  // namespace

TEST_CASE("Recompute: one of eight layers at a time has its activations in memory, and a step does not allocate") {
  TokenBatch const tokens({40, 40, 3, 17, 0, 1, 40, 39}, 40, 11);
  Trial<Deep<nn::Recompute>, float> recomputed(Deep<nn::Recompute>{});
  Trial<Deep<Plain>, float> plain(Deep<Plain>{});
  for (int step = 0; step < 3; ++step) {
    auto const before = lockstep_test::mallocs.load();
    recomputed.step(tokens);
    if (step == 2 && lockstep_test::counts_mallocs) CHECK(lockstep_test::mallocs == before);
    plain.step(tokens);
  }
  CHECK(recomputed.gradients == plain.gradients);
  // An eighth of a layer's activations is its output. Two fifths of all suffice for one complete layer, the outputs of
  // the others and their gradients, which without Recompute use the memory of dead activations.
  CHECK(5 * nn::Pass(recomputed.context()).activation_bytes() < 2 * nn::Pass(plain.context()).activation_bytes());
  // An evaluation needs no more memory.
  Trial<Deep<nn::Recompute>, float> evaluated(Deep<nn::Recompute>{});
  for (int run = 0; run < 2; ++run) CHECK(evaluated.evaluate(tokens).sum == plain.evaluate(tokens).sum);
  CHECK(nn::Pass(evaluated.context()).activation_bytes() < nn::Pass(recomputed.context()).activation_bytes());
}
