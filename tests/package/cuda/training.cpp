// SPDX-License-Identifier: Apache-2.0
// Trains a small transformer on the CPU and on a GPU. The C++ compiler compiles this file: kernels are in the library.
// Exits with 0 if both runs end with close parameters, and with 77 without a GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include <lockstep/cuda.cuh>
#include <lockstep/lockstep.hpp>

#include "train/text_classifier.hpp"

using namespace lockstep;

namespace {

template <class Policy>
std::vector<float> trained(Policy policy) {
  lockstep_test::TextClassifier const model({.words = 20, .longest = 9, .layers = 1});
  Trainer trainer(model, optim::SGD{.learning_rate = 0.1}, std::move(policy), 1);
  std::vector<lockstep_test::Text> texts(4);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i].label = static_cast<int>(i % 3);
    for (std::size_t t = 0; t < 3 + 2 * i; ++t)
      texts[i].tokens.push_back(static_cast<std::int32_t>((7 * i + t * t) % 20));
  }
  for (int step = 0; step < 2; ++step) trainer.step(data::Collated{data::PadCollate{}, texts});
  auto const values = trainer.values();
  return {values.begin(), values.end()};
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: needs a GPU");
    return 77;
  }
  auto const on_host = trained(parallel::SingleDevice{});
  auto const on_device = trained(parallel::OnCuda{parallel::SingleDevice{}});
  float most = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    auto const off = std::fabs(on_host[i] - on_device[i]);
    most = std::isnan(off) ? std::numeric_limits<float>::infinity() : std::max(most, off);  // max ignores NaN
  }
  // Gradients are sums of fewer than 100 products of the order of 1, so each of two steps errs by less than
  // 0.1 * 100 * 2^-24.
  bool const close = on_host.size() == on_device.size() && most < 2 * 0.1f * 100 * 0x1p-24f;
  std::printf("%zu parameters differ by at most %g\n", on_host.size(), static_cast<double>(most));
  return close ? 0 : 1;
}
