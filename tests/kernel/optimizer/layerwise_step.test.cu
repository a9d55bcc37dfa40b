// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/optimizer/layerwise_step.cuh>
#include <lockstep/optim/lamb.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;

// Three steps, the second of which is skipped. A step adds at most some 20 roundings of terms up to 1 to values up to
// 1.1, and moments accumulate theirs; divisions by roots of 1e-3 and more enlarge them by at most rate / 1e-3 = 20. The
// ratio of norms is below 1.
TEST_CASE_TEMPLATE("LAMB on CUDA steps as on the host, within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::LayerwiseStep<CudaSpace>")) return;
  using Low = std::conditional_t<std::is_same_v<T, double>, float16, bfloat16>;
  memory::CudaStream const stream;
  ThreadPool pool(1);
  optim::LAMB const lamb{.weight_decay = 0.1};
  for (Index n : {0, 1, 5, 255, 257, 4097, 9000}) {
    auto host = values<T>(n, 1);
    auto const gradient = values<T>(n, 2);
    std::vector<T> m(host.size()), v(host.size());
    std::vector<Low> shadow(host.size());
    OnDevice<T> const x(host), g(gradient), device_m(m), device_v(v);
    OnDevice<Low> const device_shadow(shadow);
    for (int step : {1, 2, 3}) {
      bool const skip = step == 2;
      auto const scalars_of = [&]<class Space>(Space) {
        return optim::StepScalars<Space>{
            .step = static_cast<double>(step), .learning_rate = 0.02, .weight = 7, .clip = 0.5, .skip = skip};
      };
      auto const scalars = scalars_of(HostSpace{});
      T* const states[] = {m.data(), v.data()};
      lamb.step(memory::Stream<HostSpace>(pool), optim::Slice<T, HostSpace>{0, n, host.data(), gradient.data(), states},
                &scalars);
      OnDevice<optim::StepScalars<CudaSpace>> const device_scalars({scalars_of(CudaSpace{})});
      T* const device_states[] = {device_m.view(n).data, device_v.view(n).data};
      optim::Slice<T, CudaSpace> slice{0, n, x.view(n).data, g.view(n).data, device_states};
      slice.half_precision = device_shadow.view(n).data;
      auto const before = x.values();
      lamb.step(stream.view(), slice, device_scalars.view(1).data);
      auto const after = x.values(), moments = device_m.values(), others = device_v.values();
      auto const copies = device_shadow.values();
      if (skip) CHECK(after == before);
      double const bound = 3 * 20 * 20 * static_cast<double>(std::numeric_limits<T>::epsilon());
      bool near = true, shadowed = true;
      for (std::size_t i = 0; i < after.size(); ++i) {
        near = near && std::abs(static_cast<double>(after[i]) - static_cast<double>(host[i])) <= bound &&
               std::abs(static_cast<double>(moments[i]) - static_cast<double>(m[i])) <= bound &&
               std::abs(static_cast<double>(others[i]) - static_cast<double>(v[i])) <= bound;
        shadowed = shadowed && copies[i].bits == Low(static_cast<float>(after[i])).bits;
      }
      CHECK(near);
      CHECK(shadowed);
    }
  }
}
