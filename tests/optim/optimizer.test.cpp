// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/optimizer.hpp>

#include <doctest/doctest.h>

namespace {

using namespace lockstep;

/// The minimum of a user's own optimizer.
struct SignDescent {
  double learning_rate = 1e-3;
  static constexpr int states = 0;
  template <class Scalar>
  void step(memory::Stream<HostSpace>, optim::Slice<Scalar, HostSpace> slice,
            optim::StepScalars<HostSpace> const* s) const {
    if (!s->active()) return;
    for (Index i = 0; i < slice.count; ++i)
      slice.values[i] -= static_cast<Scalar>(s->learning_rate) * static_cast<Scalar>(slice.gradients[i] > 0 ? 1 : -1);
  }
};
struct NoStates : SignDescent {
 private:
  using SignDescent::states;
};
struct NoStep {
  double learning_rate = 1e-3;
  static constexpr int states = 0;
};

static_assert(optim::Optimizer<SignDescent> && optim::Optimizer<SignDescent, double>);
static_assert(!optim::Optimizer<NoStates>);
static_assert(!optim::Optimizer<NoStep>);
static_assert(!optim::Optimizer<int>);

}  // namespace

TEST_CASE("an optimizer without optional members has their defaults") {
  int described = 0;
  optim::describe(SignDescent{}, [&](auto&&...) { ++described; });
  CHECK(described == 0);
  CHECK_NOTHROW(optim::check_settings(SignDescent{.learning_rate = -1}));
  CHECK(optim::name_of<SignDescent>().empty());
  static_assert(!optim::takes_touched_rows<SignDescent>());
}

TEST_CASE("a user's optimizer is a value with a step") {
  ThreadPool pool;
  float values[] = {1, 1}, gradients[] = {3, -3};
  optim::StepScalars<HostSpace> const scalars{.learning_rate = 0.5};
  SignDescent{}.step(memory::Stream<HostSpace>(pool), optim::Slice<float, HostSpace>{0, 2, values, gradients, nullptr},
                     &scalars);
  CHECK(values[0] == 0.5F);
  CHECK(values[1] == 1.5F);
}
