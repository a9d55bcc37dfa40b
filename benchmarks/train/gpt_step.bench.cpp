// SPDX-License-Identifier: Apache-2.0
// Training steps of GPT-2's architecture against PyTorch, both on one thread: equal models, batches and optimizers
// without dropout. Small: nanoGPT's model of characters, with 4 rows of 256 tokens. Gpt2: 124 million parameters, with
// 2 rows of 128 tokens. Compiled: PyTorch with torch.compile. bfloat16: in PyTorch by autocast.
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/elementwise/gelu_tanh.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/transformer/pre_norm.hpp>

#include <sized.hpp>
#include <train/add_step.hpp>

using namespace lockstep_bench;

namespace {

struct GptSizes {
  Index vocabulary, length, batch, layers, heads, width;
};
struct Passage {
  std::vector<std::int32_t> tokens, next;
};

class Mlp {
 public:
  explicit Mlp(Index width) : wide_{width, 4 * width}, narrow_{4 * width, width} {}
  void visit(auto&& each) {
    each("wide", wide_);
    each("narrow", narrow_);
  }
  auto forward(auto& context, auto const& x) const {
    return narrow_.forward(context, nn::gelu_tanh(context, wide_.forward(context, x)));
  }

 private:
  nn::Linear wide_, narrow_;
};

class Gpt {
 public:
  explicit Gpt(GptSizes const& s)
      : head_{s.width, s.vocabulary, nn::Bias::none},
        embedding_{{.length = s.length, .width = s.width}},
        norm_{s.width} {
    head_.visit([](auto const&, auto& weight) { weight.initializer = nn::Initializer::normal(0.02); });
    for (Index i = 0; i < s.layers; ++i)
      layers_.push_back(
          {{nn::LayerNorm{s.width}, nn::MultiHeadAttention{{.width = s.width, .heads = s.heads, .causal = true}}},
           {nn::LayerNorm{s.width}, Mlp{s.width}}});
  }
  void visit(auto&& each) {
    each("head", head_);
    each("embedding", embedding_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      each("attention" + std::to_string(i), layers_[i].attention);
      each("mlp" + std::to_string(i), layers_[i].mlp);
    }
    each("norm", norm_);
  }
  auto predict(auto& context, auto const& batch) const {
    auto const words = nn::Embedding::of(head_.weight(), batch[&Passage::tokens]);
    auto x = embedding_.forward(context, words, batch.positions());
    for (auto const& layer : layers_) x = layer.mlp.forward(context, layer.attention.forward(context, x));
    return head_.forward(context, norm_.forward(context, x));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Passage::next]);
  }

 private:
  struct Layer {
    nn::PreNorm<nn::LayerNorm, nn::MultiHeadAttention> attention;
    nn::PreNorm<nn::LayerNorm, Mlp> mlp;
  };
  nn::Linear head_;  // its weight is also the table of the tokens
  nn::FusedEmbedding embedding_;
  std::vector<Layer> layers_;
  nn::LayerNorm norm_;
};

auto passages(GptSizes const& s) {
  std::vector<Passage> all(static_cast<std::size_t>(s.batch));
  for (Index row = 0; row < s.batch; ++row)
    for (Index i = 0; i <= s.length; ++i) {
      auto const id = static_cast<std::int32_t>((i * 7919 + row * 104729 + i * i * 31) % s.vocabulary);
      auto& passage = all[static_cast<std::size_t>(row)];
      if (i < s.length) passage.tokens.push_back(id);
      if (i > 0) passage.next.push_back(id);
    }
  return one_batch(std::move(all), data::PadCollate{});
}

template <class Model>
void add_case(std::string const& name, GptSizes const& s, std::vector<std::string> arguments) {
  add_step(
      name, [s] { return Model(Gpt(s)); }, [s] { return passages(s); });
  for (auto const& [size, value] : {std::pair{"--vocabulary", s.vocabulary},
                                    {"--length", s.length},
                                    {"--batch", s.batch},
                                    {"--layers", s.layers},
                                    {"--heads", s.heads},
                                    {"--width", s.width}}) {
    arguments.emplace_back(size);
    arguments.push_back(std::to_string(value));
  }
  add_step_peer(name, "gpt.py", arguments);
  arguments.emplace_back("--compiled");
  add_step_peer(name, "gpt.py", arguments, "pytorch_compiled");
}

}  // namespace

void register_benchmarks() {
  GptSizes const small{.vocabulary = 65,
                       .length = sized(256, 32),
                       .batch = sized(4, 1),
                       .layers = 6,
                       .heads = 6,
                       .width = sized(384, 48)};
  GptSizes const gpt2{.vocabulary = sized(50257, 500),
                      .length = sized(128, 32),
                      .batch = sized(2, 1),
                      .layers = 12,
                      .heads = 12,
                      .width = sized(768, 48)};
  add_case<Gpt>("gpt_step/small", small, {});
  add_case<nn::InBfloat16<Gpt>>("gpt_step/small/bfloat16", small, {"--autocast"});
  add_case<Gpt>("gpt_step/gpt2", gpt2, {});
  add_case<nn::InBfloat16<Gpt>>("gpt_step/gpt2/bfloat16", gpt2, {"--autocast"});
}
