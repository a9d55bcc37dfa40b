// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include <lockstep/kernel/loss/cross_entropy.cuh>

#include <kernel/device_roof.cuh>

using namespace lockstep;
using namespace lockstep_bench;

int main() {
  if (!DeviceRoof::there("cuda/kernel/loss/cross_entropy")) return 0;
  DeviceRoof roof("cuda/kernel/loss/cross_entropy");
  for (Index classes : {Index{256}, Index{1000}, Index{32000}}) {
    Index const rows = (Index{1} << 27) / classes;
    auto const logits = roof.buffer<float>(rows * classes);
    auto const labels = roof.buffer<std::int32_t>(rows);
    auto const losses = roof.buffer<double>(rows), weights = roof.buffer<double>(rows);
    TensorView<float, 2, CudaSpace> const in_place{logits.data(), {rows, classes}};
    roof.compare("cross entropy, float32, forward and backward in place, " + std::to_string(rows) + " x " +
                     std::to_string(classes),
                 2 * static_cast<double>(rows * classes) * sizeof(float), [&] {
                   kernel::CrossEntropy<CudaSpace>::forward_backward<float>(
                       roof.stream(), kernel::SequenceLayout<CudaSpace>::vectors(rows), {}, in_place,
                       TensorView<std::int32_t const, 1, CudaSpace>{labels.data(), {rows}}, {losses.data(), {rows}},
                       {weights.data(), {rows}}, in_place, Write::overwrite);
                 });
  }
}
