// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include <thrust/device_vector.h>

#include <lockstep/kernel/optimizer/optimizer_step.cuh>
#include <lockstep/kernel/reduction/sum_of_squares.cuh>
#include <lockstep/optim/adamw.hpp>

#include <kernel/device_roof.cuh>

using namespace lockstep;
using namespace lockstep_bench;

void register_benchmarks() {
  using Stream = memory::Stream<CudaSpace>;
  for (Index const count : {Index{1} << 20, Index{1} << 27}) {
    auto const bytes = static_cast<double>(count) * sizeof(float);
    auto const sizes = "/parameters:" + std::to_string(count);
    add_device_kernel("cuda/adamw/float32" + sizes, 7 * bytes, [count](Stream stream) -> DevicePass {
      optim::StepScalars<CudaSpace> const first{.step = 1, .learning_rate = 1e-3, .weight = 1};
      auto const scalars = std::make_shared<thrust::device_vector<optim::StepScalars<CudaSpace>>>(1, first);
      auto const values = device_buffer<float>(count), gradients = device_buffer<float>(count),
                 m = device_buffer<float>(count), v = device_buffer<float>(count);
      return [=] {
        float* const states[] = {m->data(), v->data()};
        optim::AdamW{}.step(stream, optim::Slice<float, CudaSpace>{0, count, values->data(), gradients->data(), states},
                            scalars->data().get());
      };
    });
    add_device_kernel("cuda/global_norm/float32" + sizes, bytes, [count](Stream stream) -> DevicePass {
      return [=, gradients = device_buffer<float>(count)] {
        static_cast<void>(kernel::SumOfSquares<CudaSpace>::run<float>(
            stream, TensorView<float const, 1, CudaSpace>{gradients->data(), {count}}));
      };
    });
  }
}
