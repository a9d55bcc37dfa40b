// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/optimizer/optimizer_step.cuh>
#include <lockstep/optim/adagrad.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/nadam.hpp>
#include <lockstep/optim/rmsprop.hpp>
#include <lockstep/optim/sgd.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;

namespace {

/// Some optimizer has each type: double's is float16.
template <class T>
using Low = std::conditional_t<std::is_same_v<T, double>, float16, bfloat16>;

template <class T>
struct Arenas {
  Index n;
  std::vector<T> x = values<T>(n, 1), gradient = values<T>(n, 2), first = std::vector<T>(x.size()), second = first;
  std::vector<Low<T>> shadow = std::vector<Low<T>>(x.size());
};

template <class Space>
optim::StepScalars<Space> scalars_of(int step, bool skip) {
  return {.step = static_cast<double>(step), .learning_rate = 0.02, .weight = 7, .clip = 0.5, .skip = skip};
}

template <class T, class Optimizer>
void step_host(Optimizer const& optimizer, Arenas<T>& a, int step, bool skip) {
  ThreadPool pool(1);
  T* const states[] = {a.first.data(), a.second.data()};
  auto const scalars = scalars_of<HostSpace>(step, skip);
  optim::Slice<T, HostSpace> slice{0, a.n, a.x.data(), a.gradient.data(), states};
  slice.half_precision = a.shadow.data();
  optimizer.step(memory::Stream<HostSpace>(pool), slice, &scalars);
}

/// Three steps, the second of which is skipped. A step adds at most some 12 roundings of terms up to 1 to values up to
/// 1.1, and moments accumulate theirs; divisions by roots of 1e-3 and more enlarge them by at most rate / 1e-3 = 20.
template <class T, class Optimizer>
void compare(Optimizer const& optimizer) {
  memory::CudaStream const stream;
  for (Index n : {0, 1, 255, 257, 5000}) {
    Arenas<T> host{n};
    OnDevice<T> const x(host.x), gradient(host.gradient), first(host.first), second(host.second);
    OnDevice<Low<T>> const shadow(host.shadow);
    for (int step : {1, 2, 3}) {
      bool const skip = step == 2;
      step_host(optimizer, host, step, skip);
      OnDevice<optim::StepScalars<CudaSpace>> const scalars({scalars_of<CudaSpace>(step, skip)});
      T* const states[] = {first.view(n).data, second.view(n).data};
      optim::Slice<T, CudaSpace> slice{0, n, x.view(n).data, gradient.view(n).data, states};
      slice.half_precision = shadow.view(n).data;
      auto const before = x.values();
      optimizer.step(stream.view(), slice, scalars.view(1).data);
      auto const after = x.values(), moments = first.values(), others = second.values();
      if (skip) CHECK(after == before);
      double const bound = 3 * 12 * 20 * static_cast<double>(std::numeric_limits<T>::epsilon());
      bool near = true, shadowed = true;
      for (std::size_t i = 0; i < after.size(); ++i) {
        near = near && std::abs(static_cast<double>(after[i]) - static_cast<double>(host.x[i])) <= bound &&
               std::abs(static_cast<double>(moments[i]) - static_cast<double>(host.first[i])) <= bound &&
               std::abs(static_cast<double>(others[i]) - static_cast<double>(host.second[i])) <= bound;
        shadowed = shadowed && shadow.values()[i].bits == Low<T>(static_cast<float>(after[i])).bits;
        if (n > 300 && i > 50) break;
      }
      CHECK(near);
      CHECK(shadowed);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("optimizers on CUDA step as on the host, within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::OptimizerStep<CudaSpace>")) return;
  compare<T>(optim::SGD{.weight_decay = 0.1});
  compare<T>(optim::SGD{.momentum = 0.9, .weight_decay = 0.1});
  compare<T>(optim::SGD{.momentum = 0.9, .kind = optim::SGD::Momentum::nesterov});
  compare<T>(optim::Adam{.weight_decay = 0.1});
  compare<T>(optim::AdamW{});
  compare<T>(optim::RMSprop{.weight_decay = 0.1});
  compare<T>(optim::RMSprop{.momentum = 0.9});
  compare<T>(optim::Adagrad{.initial_accumulator_value = 0.1, .weight_decay = 0.1});
  compare<T>(optim::NAdam{.weight_decay = 0.1});
  compare<T>(optim::NAdam{.weight_decay = 0.1, .kind = optim::NAdam::WeightDecay::decoupled});
  compare<T>(optim::Averaged{optim::SGD{.momentum = 0.9, .weight_decay = 0.1}, 0.5});
}

TEST_CASE("on CUDA a step's scalars have the loss scale, which is updated as on the host") {
  if (!lockstep_test::has_gpu("kernel::OptimizerStep<CudaSpace>")) return;
  using Scalars = optim::StepScalars<CudaSpace>;
  using State = optim::LossScaler::State;
  memory::CudaStream const stream;
  optim::LossScaler const scaler{.growth_interval = 2};
  State expected{1024, 0, 3};
  OnDevice<State> const state({expected});
  OnDevice<Scalars> const scalars(std::vector<Scalars>(1));
  OnDevice<double> const totals({3.0, 8.0}), none({0.0, 0.0}), no_number({std::nan(""), 8.0});
  double const infinity = std::numeric_limits<double>::infinity();
  for (double const squares : {4.0, 4.0, infinity, std::nan(""), 4.0}) {
    OnDevice<double> const sum({squares});
    Scalars known{.step = 9};
    // The mean's norm is 2 / 8 / scale.
    kernel::OptimizerStep<CudaSpace>::complete(stream.view(), known, totals.view(2).data,
                                               0x1p-3 / static_cast<double>(expected.scale), sum.view(1).data, scaler,
                                               state.view(1).data, scalars.view(1).data);
    auto const made = scalars.values()[0];
    CHECK(made.step == 9 - static_cast<double>(expected.skipped));
    CHECK(made.loss_scale == static_cast<double>(expected.scale));
    CHECK(made.skip == !std::isfinite(squares));
    if (!made.skip) CHECK(made.clip == 0.5);
    expected = scaler.after(expected, std::isfinite(squares));
    CHECK(state.values()[0] == expected);
  }
  CHECK(expected == State{512, 1, 5});
  OnDevice<double> const zero({0.0});  // no rank had a sample
  kernel::OptimizerStep<CudaSpace>::complete(stream.view(), Scalars{}, none.view(2).data, 0, zero.view(1).data, scaler,
                                             state.view(1).data, scalars.view(1).data);
  CHECK(state.values()[0] == expected);
  CHECK_FALSE(scalars.values()[0].active());
  kernel::OptimizerStep<CudaSpace>::complete(stream.view(), Scalars{}, no_number.view(2).data, 0, nullptr, scaler,
                                             static_cast<State*>(nullptr), scalars.view(1).data);
  CHECK(scalars.values()[0].skip);
}
