// SPDX-License-Identifier: Apache-2.0
// Trains a small transformer for two steps and prints a hash of its parameters, to compare builds.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <lockstep/lockstep.hpp>
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
  Trainer trainer(Classifier{}, optim::AdamW{.learning_rate = 1e-2}, parallel::SingleDevice{}, 1);
  std::vector<Text> const first(texts.begin(), texts.begin() + 8), last(texts.begin() + 8, texts.end());
  for (auto const* half : {&first, &last})
    trainer.step(data::Collated{data::RaggedCollate{}, *half}, {.clip_norm = 0.5});
  std::puts(train::parameters_sha256(trainer.layout(), trainer.values()).c_str());
}
