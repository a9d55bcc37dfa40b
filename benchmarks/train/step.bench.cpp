// SPDX-License-Identifier: Apache-2.0
// Training steps of the text classifier against PyTorch's eager mode: equal model, shapes, dropout and optimizer, both
// on one thread. Padded: all rows are full. Ragged: texts of unequal lengths, which PyTorch pads to the longest, as in
// typical code, or packs, with a loop over their attention. bfloat16: bfloat16 activations and float parameters, in
// PyTorch by autocast.
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/nn/autograd/half_precision.hpp>

#include <train/add_step.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {
template <class Collate, class Model = Classifier>
void add_case(Sizes const& sizes) {
  bool const ragged = sizes.rows == Rows::unequal, rounded = !std::is_same_v<nn::ActivationsOf<Model>, float>;
  auto const name = "step/width:" + std::to_string(sizes.width) + (ragged ? "/ragged" : "/padded") +
                    (rounded ? "/bfloat16" : "") + (sizes.dropout > 0 ? "" : "/no_dropout");
  std::vector<std::string> arguments{"--dropout",      std::to_string(sizes.dropout),
                                     "--width",        std::to_string(sizes.width),
                                     "--feed-forward", std::to_string(sizes.feed_forward)};
  if (ragged) arguments.emplace_back("--unequal");
  if (rounded) arguments.emplace_back("--autocast");
  add_step(
      name, [sizes] { return Model(Classifier(sizes)); }, [sizes] { return batch_of<Collate>(sizes); });
  add_step_peer(name, "text_classification.py", arguments);
  if (!ragged) return;
  arguments.emplace_back("--packed");
  add_step_peer(name, "text_classification.py", arguments, "pytorch_packed");
}
}  // namespace

void register_benchmarks() {
  for (Index const width : {128, 256}) {
    Sizes sizes{.width = width, .feed_forward = 2 * width};
    add_case<data::PadCollate>(sizes);
    add_case<data::PadCollate, nn::InBfloat16<Classifier>>(sizes);
    sizes.rows = Rows::unequal;
    add_case<data::RaggedCollate>(sizes);
    sizes.dropout = 0;
    add_case<data::RaggedCollate>(sizes);
    sizes.rows = Rows::full;
    add_case<data::PadCollate>(sizes);
  }
}
