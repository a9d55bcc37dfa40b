// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <lockstep/kernel/elementwise/binary_operation.cuh>
#include <lockstep/memory/cuda.cuh>

#include "memory/device.hpp"
#include "sequence_model.hpp"

namespace lockstep_test {

/// Checks that a model of small integers, which every type represents exactly, has on CUDA the loss and the gradients
/// of the host in float, with a matrix as batch. The host in 16 bits has them, too. `weights` are the concatenated
/// parameters.
template <class Scalar, class Model>
void check_same_on_cuda(Model const& model, std::vector<float> const& weights, std::vector<float> const& numbers,
                        lockstep::Index width) {
  using namespace lockstep;
  Extents<2> const extent{static_cast<Index>(numbers.size()) / width, width};
  TensorView<float const, 2, HostSpace> const rows{numbers.data(), extent};
  Trial<Model, float> host{model};
  auto weight = weights.begin();
  for (auto const& entry : host.layout.entries()) {
    REQUIRE(weights.end() - weight >= entry.size);
    std::copy_n(weight, entry.size, host.values.begin() + entry.offset);
    weight += entry.size;
  }
  auto const loss = host.step(rows);
  Trial<Model, Scalar> low{model};
  low.values = host.values;
  CHECK(low.step(rows).sum == loss.sum);
  CHECK(low.gradients == host.gradients);

  memory::CudaStream stream;
  nn::Context<Scalar, CudaSpace> context(stream.view());
  OnDevice<float> const values(host.values), gradients(std::vector<float>(host.values.size())), batch(numbers);
  OnDevice<double> const totals({0, 0});
  auto const size = host.values.size();
  context.parameters().bind(values.view(size).data, gradients.view(size).data, host.layout.entries().size());
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const on_device =
      host.model.forward(context, TensorView<float const, 2, CudaSpace>{batch.view(numbers.size()).data, extent});
  kernel::BinaryOperation<CudaSpace>::forward<kernel::Plus, double>(stream.view(), {totals.view(2).data, {2}},
                                                                    {on_device.totals, {2}}, totals.view(2));
  nn::Pass(context).backward({});
  CHECK(totals.values() == std::vector<double>{loss.sum, loss.weight});
  CHECK(gradients.values() == host.gradients);
  for (auto const& entry : host.layout.entries()) {
    auto const first = host.gradients.begin() + entry.offset;
    CHECK(std::any_of(first, first + entry.size, [](float g) { return g != 0; }));
  }
}

}  // namespace lockstep_test
