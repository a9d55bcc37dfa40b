// SPDX-License-Identifier: Apache-2.0
// Training steps of the text classifier against PyTorch's eager mode: same model, shapes, dropout and optimizer, both
// on one thread, all rows full.
#include <functional>
#include <string>

#include <lockstep/parallel/single_device.hpp>

#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {
void compare(Ratios& ratios, std::string const& name, Sizes const& sizes) {
  auto peer = python_peer("text_classification.py", {"--dropout", std::to_string(sizes.dropout)});
  if (!peer) return;
  Training training(parallel::SingleDevice{.threads = 1}, sizes);
  auto const samples = static_cast<double>(sizes.batch);
  ratios.compare(name, "pytorch",
                 [&](double duration) { return samples * rate(duration, Time::processor, [&] { training.step(); }); },
                 std::ref(*peer), {.seconds = 1, .count = 21});
}
}  // namespace

int main() {
  Ratios ratios("train/step");
  compare(ratios, "step text classification, d=128, padded, 1 thread", {});
  compare(ratios, "step text classification, d=128, padded, no dropout, 1 thread", {.dropout = 0});
}
