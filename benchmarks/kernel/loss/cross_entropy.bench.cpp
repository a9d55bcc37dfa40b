// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <lockstep/kernel/loss/cross_entropy.hpp>

#include <numbers.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

void register_benchmarks() {
  static ThreadPool pool;
  for (auto const& [rows, classes] :
       {std::pair<Index, Index>{32, 4}, {4096, 2}, {4096, 1000}, {512, 20000}, {512, 32000}}) {
    auto const name = "cross_entropy/forward_backward" + parts({{"rows", rows}, {"classes", classes}});
    add(name, [rows = rows, classes = classes](benchmark::State& state) {
      memory::Stream<HostSpace> const stream(pool);
      Numbers logits(static_cast<std::size_t>(rows * classes)), gradient(logits.size());
      for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 2654435761U % 1000) / 250 - 2;
      std::vector<std::int32_t> labels;
      for (Index r = 0; r < rows; ++r) labels.push_back(static_cast<std::int32_t>(r % classes));
      std::vector<double> losses(static_cast<std::size_t>(rows)), weights(losses.size());
      for (auto _ : state)
        kernel::CrossEntropy<HostSpace>::forward_backward<float>(
            stream, kernel::SequenceLayout<HostSpace>::vectors(rows), {}, {logits.data(), {rows, classes}},
            TensorView<std::int32_t, 1, HostSpace>{labels.data(), {rows}}, {losses.data(), {rows}},
            {weights.data(), {rows}}, {gradient.data(), {rows, classes}}, Write::overwrite);
    });
    add_peer(name, "pytorch", pytorch_kernel("cross_entropy", {rows, classes}));
  }
}
