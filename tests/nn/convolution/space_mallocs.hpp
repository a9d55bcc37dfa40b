// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "malloc_count.hpp"
#include "nn/space_check.hpp"

namespace space_check {

/// Number of allocations in a trial's steps after its shapes were seen once.
template <class Scalar, class Layer, int Rank, class Apply>
[[nodiscard]] long mallocs_of_later_steps(Trial<Scalar, Layer, Rank, Apply>& trial, int threads) {
  ThreadPool pool(threads);
  nn::Context<Scalar, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(trial.values.data(), trial.gradients.data(), trial.layout.entries().size());
  context.parameters().bind_buffers(trial.buffers.data());
  long before = 0;
  for (int step = 0; step < 6; ++step) {
    if (step == 2) before = lockstep_test::mallocs;  // the arena may merge its chunks in the second
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
    static_cast<void>(trial.model.forward(context, Batch{}));
    nn::Pass(context).backward({});
  }
  return lockstep_test::mallocs - before;
}

}  // namespace space_check
