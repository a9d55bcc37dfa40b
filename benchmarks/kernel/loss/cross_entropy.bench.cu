// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include <lockstep/kernel/loss/cross_entropy.cuh>

#include <kernel/device_roof.cuh>

using namespace lockstep;
using namespace lockstep_bench;

void register_benchmarks() {
  for (Index const classes : {Index{256}, Index{1000}, Index{32000}}) {
    Index const rows = (Index{1} << 27) / classes;
    add_device_kernel("cuda/cross_entropy/forward_backward/in_place" + parts({{"rows", rows}, {"classes", classes}}),
                      2 * static_cast<double>(rows * classes) * sizeof(float),
                      [=](memory::Stream<CudaSpace> stream) -> DevicePass {
                        auto const logits = device_buffer<float>(rows * classes);
                        auto const labels = device_buffer<std::int32_t>(rows);
                        auto const losses = device_buffer<double>(rows), weights = device_buffer<double>(rows);
                        return [=] {
                          TensorView<float, 2, CudaSpace> const in_place{logits->data(), {rows, classes}};
                          kernel::CrossEntropy<CudaSpace>::forward_backward<float>(
                              stream, kernel::SequenceLayout<CudaSpace>::vectors(rows), {}, in_place,
                              TensorView<std::int32_t const, 1, CudaSpace>{labels->data(), {rows}},
                              {losses->data(), {rows}}, {weights->data(), {rows}}, in_place, Write::overwrite);
                        };
                      });
  }
}
