// SPDX-License-Identifier: Apache-2.0
// Trains a small transformer for two steps and prints a hash of its parameters, to compare builds. It calls the session
// of a policy without a Trainer, whose code has no kernels and would take most of the compile time.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/nn/normalization/rms_norm.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/files/parameters_sha256.hpp>

using namespace lockstep;

namespace {

struct Text {
  std::vector<std::int32_t> tokens;
  int label;
};

class Classifier {
 public:
  void visit(auto&& each) {
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("norm", norm_);
    each("head", head_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    auto const pooled = nn::mean_pool(context, encoder_.forward(context, x));
    return nn::cross_entropy(context, head_.forward(context, norm_.forward(context, pooled)), batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = 50, .length = 40, .width = 48, .dropout = 0.1}};
  nn::TransformerEncoder encoder_{{.layers = 1, .width = 48, .heads = 3, .feed_forward = 80, .dropout = 0.1}};
  nn::RMSNorm norm_{48};
  nn::Linear head_{48, 5};
};

}  // namespace

int main() {
  std::vector<Text> texts(16);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i].label = static_cast<int>(i % 5);
    for (std::size_t t = 0; t < 3 + 2 * i; ++t)
      texts[i].tokens.push_back(static_cast<std::int32_t>((7 * i + t * t) % 50));
  }
  Classifier model;
  optim::AdamW const adamw{.learning_rate = 1e-2};
  auto const layout = nn::ParameterLayout::of(model);
  parallel::SingleDevice policy;
  parallel::SingleDevice::Session<Classifier, optim::AdamW> session(policy, model, layout,
                                                                    nn::initial_values(layout, 1));
  std::vector<Text> const first(texts.begin(), texts.begin() + 8), last(texts.begin() + 8, texts.end());
  Index step = 0;
  for (auto const* half : {&first, &last}) {
    data::Collated const batch{data::RaggedCollate{}, *half};
    session.micro_step(std::span(&batch.batch(), 1), {.key = 1});
    session.update(adamw, {.step = ++step, .learning_rate = adamw.learning_rate, .clip_norm = 0.5});
  }
  std::puts(train::parameters_sha256(layout, session.values()).c_str());
}
