// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/optimizer/optimizer_step.cuh>
#include <lockstep/kernel/optimizer/orthogonalize.cuh>
#include <lockstep/optim/muon.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;

// Three steps, the second of which is skipped. A direction errs on host and device by at most the bound of
// orthogonalize.test.cpp: 1213 * 25 (l + 2 s + 10) sqrt(s) halves of epsilon, twice here for both. It changes values by
// the rate times the adjustment.
TEST_CASE_TEMPLATE("Muon on CUDA steps as on the host, within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Orthogonalize<CudaSpace>")) return;
  memory::CudaStream const stream;
  ThreadPool pool(1);
  optim::Muon const muon{.learning_rate = 0.02};
  for (auto const& shape : {std::vector<Index>{1, 1}, {3, 5}, {33, 7}, {16, 16}, {20, 64}}) {
    auto const n = shape[0] * shape[1];
    auto host = values<T>(n, 1);
    auto const gradient = values<T>(n, 2);
    std::vector<T> m(host.size()), work(static_cast<std::size_t>(optim::Muon::work_elements(shape)));
    std::vector<bfloat16> shadow(host.size());
    OnDevice<T> const x(host), g(gradient), device_m(m), device_work(work);
    OnDevice<bfloat16> const device_shadow(shadow);
    for (int step : {1, 2, 3}) {
      bool const skip = step == 2;
      auto const scalars_of = [&]<class Space>(Space) {
        return optim::StepScalars<Space>{
            .step = static_cast<double>(step), .learning_rate = 0.02, .weight = 7, .clip = 0.5, .skip = skip};
      };
      auto const scalars = scalars_of(HostSpace{});
      T* const states[] = {m.data()};
      optim::Slice<T, HostSpace> on_host{0, n, host.data(), gradient.data(), states};
      on_host.shape = shape;
      on_host.work = work.data();
      muon.step(memory::Stream<HostSpace>(pool), on_host, &scalars);
      OnDevice<optim::StepScalars<CudaSpace>> const device_scalars({scalars_of(CudaSpace{})});
      T* const device_states[] = {device_m.view(n).data};
      optim::Slice<T, CudaSpace> slice{0, n, x.view(n).data, g.view(n).data, device_states};
      slice.half_precision = device_shadow.view(n).data;
      slice.shape = shape;
      slice.work = device_work.view(static_cast<Index>(work.size())).data;
      auto const before = x.values();
      muon.step(stream.view(), slice, device_scalars.view(1).data);
      auto const after = x.values(), moments = device_m.values();
      auto const copies = device_shadow.values();
      if (skip) CHECK(after == before);
      auto const s = static_cast<double>(std::min(shape[0], shape[1])),
                 l = static_cast<double>(std::max(shape[0], shape[1]));
      auto const epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
      double const bound =
          2 * 0.02 * muon.adjustment_of(shape[0], shape[1]) * 1213 * 25 * (l + 2 * s + 10) * std::sqrt(s) * epsilon +
          10 * epsilon;
      bool near = true, shadowed = true;
      for (std::size_t i = 0; i < after.size(); ++i) {
        near = near &&
               std::abs(static_cast<double>(after[i]) - static_cast<double>(host[i])) <= std::min(bound, 1e-4) &&
               std::abs(static_cast<double>(moments[i]) - static_cast<double>(m[i])) <= 10 * epsilon;
        shadowed = shadowed && copies[i].bits == bfloat16(static_cast<float>(after[i])).bits;
      }
      CHECK(near);
      CHECK(shadowed);
    }
  }
}
