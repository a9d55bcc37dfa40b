// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/autograd/half_precision.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "every_operation.hpp"
#include "golden/layer_cases.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::Everything;
using lockstep_test::OnDevice;
using lockstep_test::Operations;

namespace half_precision_on_cuda {
namespace {

struct Outcome {
  std::vector<double> loss;  // its sum and its weight
  std::vector<float> gradients;
  bool operator==(Outcome const&) const = default;
};

/// Runs the golden cases on the device.
class OnGpu {
 public:
  using Space = CudaSpace;
  [[nodiscard]] memory::Stream<CudaSpace> stream() const noexcept { return stream_.view(); }
  template <class T>
  [[nodiscard]] T* put(std::vector<T> const& values) {
    auto const copy = std::make_shared<OnDevice<T>>(values);
    kept_.push_back(copy);
    return copy->view(values.size()).data;
  }
  template <class T>
  [[nodiscard]] std::vector<T> get(T const* from, Index count) const {
    stream().synchronize();
    std::vector<T> out(static_cast<std::size_t>(count));
    if (count > 0)
      memory::check_cuda(cudaMemcpy(out.data(), from, out.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return out;
  }

 private:
  memory::CudaStream stream_;
  std::vector<std::shared_ptr<void>> kept_;
};

/// One step of the model as `exact` computes it on the host.
template <class Low, class Exact>
Outcome step(Exact const& exact, lockstep_test::Mixed const& mixed, std::uint64_t key) {
  OnGpu gpu;
  nn::Context<Low, CudaSpace> context(gpu.stream());
  auto const size = static_cast<Index>(exact.values.size());
  auto* const gradients = gpu.put(std::vector<float>(exact.values.size()));
  auto* const totals = gpu.put(std::vector<double>{0, 0});
  context.parameters().bind(gpu.put(exact.values), gradients, exact.layout.entries().size());
  context.parameters().bind_buffers(gpu.put(exact.buffers));
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, key);
  auto const loss =
      exact.model.forward(context, mixed.in<CudaSpace>([&](auto const& values) { return gpu.put(values); }));
  kernel::BinaryOperation<CudaSpace>::forward<kernel::Plus, double>(gpu.stream(), {totals, {2}}, {loss.totals, {2}},
                                                                    {totals, {2}});
  nn::Pass(context).backward({});
  return {gpu.get(totals, 2), gpu.get(gradients, size)};
}

template <class Low, class Model>
void check_gradients(Model const& model) {
  lockstep_test::Mixed const mixed;
  lockstep_test::Trial<Model, float> exact(model);
  auto const before = exact.buffers;
  auto const loss = exact.step(mixed.on_host(), 3);
  exact.buffers = before;
  auto const low = step<Low>(exact, mixed, 3);
  CHECK(low.loss[1] == loss.weight);
  CHECK(std::abs(low.loss[0] - loss.sum) <= lockstep_test::rounded_apart<Low> * loss.sum);
  lockstep_test::check_rounded<Low>(exact.layout, exact.gradients, low.gradients);
  CHECK(step<Low>(exact, mixed, 3) == low);
}

}  // namespace

TEST_CASE_TEMPLATE("every layer on CUDA gives in 16 bits the host's float gradients within rounding", Low, bfloat16,
                   float16) {
  if (!lockstep_test::has_gpu("half precision on CUDA")) return;
  check_gradients<Low>(Everything{});
}

TEST_CASE_TEMPLATE("so does every operation without parameters", Low, bfloat16, float16) {
  if (!lockstep_test::has_gpu("half precision on CUDA")) return;
  check_gradients<Low>(Operations{});
}

TEST_CASE("outputs and gradients of layers on CUDA in bfloat16 have errors as small as PyTorch's") {
  if (!lockstep_test::has_gpu("half precision on CUDA")) return;
  OnGpu gpu;
  golden::check_layers<bfloat16>(gpu);
}

}  // namespace half_precision_on_cuda
