// SPDX-License-Identifier: Apache-2.0
// Peak memory of a training step of the text classifier, in addition to parameters, gradients and the optimizer state,
// against PyTorch's eager mode: its bytes over ours.
#include <cstdio>
#include <string>

#include <lockstep/parallel/policy/single_device.hpp>

#include <python_peer.hpp>
#include <ratios.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

int main() {
  Ratios ratios("train/activation_memory");
  for (Index width : {128, 256})
    for (double dropout : {0.1, 0.0}) {
      auto peer =
          python_peer("activation_memory.py", {"--dropout", std::to_string(dropout), "--width", std::to_string(width),
                                               "--feed-forward", std::to_string(2 * width)});
      if (!peer) return 0;
      Sizes const sizes{.width = width, .feed_forward = 2 * width, .dropout = dropout};
      Training training(parallel::SingleDevice{.threads = 1}, Classifier(sizes), batch_of(sizes));
      for (int i = 0; i < 3; ++i) training.step();
      auto const ours = training.activation_bytes(), theirs = (*peer)(0);
      char bytes[64];
      std::snprintf(bytes, sizeof bytes, "%.1f MB against %.1f MB", ours * 1e-6, theirs * 1e-6);
      ratios.report("activation memory text classification, d=" + std::to_string(width) + ", padded" +
                        (dropout > 0 ? "" : ", no dropout"),
                    "pytorch", {theirs / ours, theirs / ours, theirs / ours}, bytes);
    }
}
