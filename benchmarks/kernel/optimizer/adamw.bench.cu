// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <lockstep/kernel/optimizer/optimizer_step.cuh>
#include <lockstep/kernel/reduction/sum_of_squares.cuh>
#include <lockstep/optim/adamw.hpp>

#include <kernel/device_roof.cuh>

using namespace lockstep;
using namespace lockstep_bench;

int main() {
  if (!DeviceRoof::there("cuda/kernel/optimizer/adamw")) return 0;
  DeviceRoof roof("cuda/kernel/optimizer/adamw");
  auto const scalars = roof.buffer<optim::StepScalars<CudaSpace>>(1);
  optim::StepScalars<CudaSpace> const first{.step = 1, .learning_rate = 1e-3, .weight = 1};
  memory::check_cuda(cudaMemcpy(scalars.data(), &first, sizeof first, cudaMemcpyHostToDevice), "cudaMemcpy");
  for (Index count : {Index{1} << 20, Index{1} << 27}) {
    auto const values = roof.buffer<float>(count), gradients = roof.buffer<float>(count), m = roof.buffer<float>(count),
               v = roof.buffer<float>(count);
    float* const states[] = {m.data(), v.data()};
    auto const bytes = static_cast<double>(count) * sizeof(float);
    auto const sizes = std::to_string(count) + " parameters";
    roof.compare("adamw, float32, " + sizes, 7 * bytes, [&] {
      optim::AdamW{}.step(roof.stream(),
                          optim::Slice<float, CudaSpace>{0, count, values.data(), gradients.data(), states},
                          scalars.data());
    });
    roof.compare("global norm, float32, " + sizes, bytes, [&] {
      static_cast<void>(kernel::SumOfSquares<CudaSpace>::run<float>(
          roof.stream(), TensorView<float const, 1, CudaSpace>{gradients.data(), {count}}));
    });
  }
}
