// SPDX-License-Identifier: Apache-2.0
// Greedy continuation of prompts of 16 to 48 tokens by 32 new ones, with GPT-2's architecture of 124 million random
// parameters, on one thread, in new tokens per second of processor time. The peers are Hugging Face's `generate`, which
// pads, and Lockstep with one prompt at a time.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/prediction/continue_tokens.hpp>
#include <lockstep/train/prediction/predictor.hpp>

#include <python_peer.hpp>
#include <sized.hpp>
#include <suite.hpp>
#include <train/gpt.hpp>

using namespace lockstep_bench;

namespace {

GptSizes sizes() {
  return {.vocabulary = sized(50257, 500),
          .length = sized(1024, 128),
          .batch = 0,
          .layers = 12,
          .heads = 12,
          .width = sized(768, 48)};
}
Index fresh() { return sized(32, 4); }

train::Predictor<Gpt> predictor() {
  Gpt model(sizes());
  std::vector<float> values(static_cast<std::size_t>(nn::ParameterLayout::of(model).size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.04f * (uniform(Philox(1), i) - 0.5f);
  return {std::move(model), std::span<float const>(values)};
}

void add_case(Index prompts, Shared<train::Predictor<Gpt>> const& own) {
  std::string const name = "generate/gpt2/prompts:" + std::to_string(prompts);
  auto const s = sizes();
  std::vector<train::Prompt> all;
  for (Index row = 0; row < prompts; ++row) {
    auto& prompt = all.emplace_back();
    for (Index t = 0; t < 16 + row * 7 % 33; ++t)
      prompt.tokens.push_back(static_cast<std::int32_t>((row * 131 + t * 977) % s.vocabulary));
    prompt.options = {.count = fresh(), .longest = s.length, .draw = {.temperature = 0}};
  }
  auto const add_own = [&](std::string const& called, Index together) {
    add(called, [=](benchmark::State& state) {
      auto& predictor = *own;  // made before the first run is timed
      for (auto _ : state)
        benchmark::DoNotOptimize(train::continue_prompts(
            predictor, all,
            [](std::vector<train::PromptTokens> const& rows) {
              std::vector<Passage> texts;
              for (auto const& row : rows) texts.push_back({row.tokens, {}});
              return data::Collated{data::RaggedCollate{}, texts};
            },
            together));
      state.SetItemsProcessed(state.iterations() * prompts * fresh());
    })->Unit(benchmark::kMillisecond);
  };
  add_own(name, prompts);
  if (prompts > 1) add_own(name + "/peer:one_at_a_time", 1);
  std::vector<std::string> arguments;
  for (auto const& [size, value] : {std::pair{"--vocabulary", s.vocabulary},
                                    {"--length", s.length},
                                    {"--layers", s.layers},
                                    {"--heads", s.heads},
                                    {"--width", s.width},
                                    {"--prompts", prompts},
                                    {"--fresh", fresh()}}) {
    arguments.emplace_back(size);
    arguments.push_back(std::to_string(value));
  }
  add_peer(name, "transformers", python_peer("generate.py", arguments))->Unit(benchmark::kMillisecond);
}

}  // namespace

void register_benchmarks() {
  Shared const own([] { return predictor(); });
  for (Index const prompts : {1, 8, 32}) add_case(prompts, own);
}
