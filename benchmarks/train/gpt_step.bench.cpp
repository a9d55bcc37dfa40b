// SPDX-License-Identifier: Apache-2.0
// Training steps of GPT-2's architecture against PyTorch, both on one thread: equal models, batches and optimizers
// without dropout. Small: nanoGPT's model of characters, with 4 rows of 256 tokens. Gpt2: 124 million parameters, with
// 2 rows of 128 tokens. Compiled: PyTorch with torch.compile. bfloat16: in PyTorch by autocast.
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>

#include <sized.hpp>
#include <train/add_step.hpp>
#include <train/gpt.hpp>

using namespace lockstep_bench;

namespace {

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
