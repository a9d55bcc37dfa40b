// SPDX-License-Identifier: Apache-2.0
// Training steps of the text classifier against PyTorch's eager mode: equal model, shapes, dropout and optimizer, both
// on one thread. Padded: all rows are full. Ragged: texts of unequal lengths, which PyTorch pads to the longest, as in
// typical code, or packs, with a loop over their attention. bfloat16: bfloat16 activations and float parameters, in
// PyTorch by autocast.
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/nn/autograd/half_precision.hpp>

#include <ratios.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {
template <class Collate, class Model = Classifier>
void compare(Ratios& ratios, std::string const& name, Sizes const& sizes) {
  std::vector<std::string> arguments{"--dropout",      std::to_string(sizes.dropout),
                                     "--width",        std::to_string(sizes.width),
                                     "--feed-forward", std::to_string(sizes.feed_forward)};
  if (sizes.rows == Rows::unequal) arguments.emplace_back("--unequal");
  if (!std::is_same_v<nn::ActivationsOf<Model>, float>) arguments.emplace_back("--autocast");
  auto const against = [&](std::string const& peer) {
    compare_steps(ratios, name, Model(Classifier(sizes)), batch_of<Collate>(sizes), "text_classification.py", arguments,
                  {.seconds = 1, .count = 21}, peer);
  };
  against("pytorch");
  if (sizes.rows == Rows::full) return;
  arguments.emplace_back("--packed");
  against("pytorch packed");
}
}  // namespace

int main() {
  Ratios ratios("train/step");
  for (Index width : {128, 256}) {
    auto const step = "step text classification, d=" + std::to_string(width);
    Sizes sizes{.width = width, .feed_forward = 2 * width};
    compare<data::PadCollate>(ratios, step + ", padded, 1 thread", sizes);
    compare<data::PadCollate, nn::InBfloat16<Classifier>>(ratios, step + ", padded, bfloat16, 1 thread", sizes);
    sizes.rows = Rows::unequal;
    compare<data::RaggedCollate>(ratios, step + ", ragged, 1 thread", sizes);
    sizes.dropout = 0;
    compare<data::RaggedCollate>(ratios, step + ", ragged, no dropout, 1 thread", sizes);
    sizes.rows = Rows::full;
    compare<data::PadCollate>(ratios, step + ", padded, no dropout, 1 thread", sizes);
  }
}
