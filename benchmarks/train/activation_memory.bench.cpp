// SPDX-License-Identifier: Apache-2.0
// Peak memory of a training step of the text classifier, in addition to parameters, gradients and the optimizer state,
// against PyTorch's eager mode: its bytes over ours.
#include <string>

#include <lockstep/parallel/policy/single_device.hpp>

#include <python_peer.hpp>
#include <suite.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

void register_benchmarks() {
  for (Index const width : {128, 256})
    for (double const dropout : {0.1, 0.0}) {
      Sizes const sizes{.width = width, .feed_forward = 2 * width, .dropout = dropout};
      auto const name =
          "activation_memory/width:" + std::to_string(width) + "/padded" + (dropout > 0 ? "" : "/no_dropout");
      add(name,
          [sizes](benchmark::State& state) {
            Training training(parallel::SingleDevice{.threads = 1}, Classifier(sizes), batch_of(sizes));
            training.step();
            training.step();
            for (auto _ : state) training.step();
            state.counters["peak_bytes"] = training.activation_bytes();
            counts_only(state);
          })
          ->Iterations(1)
          ->Repetitions(1);
      add_peer(
          name, "pytorch",
          python_peer("activation_memory.py", {"--dropout", std::to_string(dropout), "--width", std::to_string(width),
                                               "--feed-forward", std::to_string(2 * width)}))
          ->Iterations(1)
          ->Repetitions(1);
    }
}
