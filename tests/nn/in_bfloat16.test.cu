// SPDX-License-Identifier: Apache-2.0
#include <lockstep/cuda.cuh>
#include <lockstep/nn/in_bfloat16.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "memory/device.hpp"
#include "nn/every_layer.hpp"

using namespace lockstep;
using lockstep_test::Everything;
using lockstep_test::OnDevice;

namespace {

struct Outcome {
  std::vector<double> loss;  // its sum and its weight
  std::vector<float> gradients;
  bool operator==(Outcome const&) const = default;
};

/// One step of the model as `exact` would make it on the host.
template <class Exact>
Outcome step(Exact const& exact, lockstep_test::Mixed const& mixed, std::uint64_t key) {
  std::vector<std::shared_ptr<void>> kept;
  auto const put = [&]<class T>(std::vector<T> const& values) {
    auto const copy = std::make_shared<OnDevice<T>>(values);
    kept.push_back(copy);
    return copy->view(values.size()).data;
  };
  memory::CudaStream const stream;
  nn::Context<bfloat16, CudaSpace> context(stream.view());
  OnDevice<float> const values(exact.values), gradients(std::vector<float>(exact.values.size())),
      buffers(exact.buffers);
  context.bind(values.view(exact.values.size()).data, gradients.view(exact.values.size()).data,
               exact.layout.entries().size());
  context.bind_buffers(buffers.view(exact.buffers.size()).data);
  context.begin_step();
  context.begin_micro_batch(nn::Mode::training, key);
  auto const loss = exact.model.forward(context, mixed.in<CudaSpace>(put));
  OnDevice<double> const totals(std::vector<double>{0, 0});
  kernel::Add<CudaSpace>::forward<double>(stream.view(), totals.view(2), {loss.totals, {2}}, totals.view(2));
  context.backward({});
  return {totals.values(), gradients.values()};
}

}  // namespace

TEST_CASE("every layer on CUDA gives in bfloat16 the gradients of the host in float, but for rounding") {
  if (!lockstep_test::has_gpu("nn::InBfloat16 on CUDA")) return;
  lockstep_test::Mixed const mixed;
  lockstep_test::Trial<Everything, float> exact(Everything{});
  auto const before = exact.buffers;
  auto const loss = exact.step(mixed.on_host(), 3);
  exact.buffers = before;
  auto const low = step(exact, mixed, 3);
  CHECK(low.loss[1] == loss.weight);
  CHECK(std::abs(low.loss[0] - loss.sum) <= lockstep_test::rounded_apart * loss.sum);
  lockstep_test::check_rounded(exact.layout, exact.gradients, low.gradients);
  CHECK(step(exact, mixed, 3) == low);
}
