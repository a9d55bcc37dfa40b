// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/model.hpp>

#include <doctest/doctest.h>

#include <memory>

#include "nn/toy.hpp"

using namespace lockstep;
using HostContext = nn::Context<float, HostSpace>;

namespace {
struct NoVisit {
  nn::Loss<HostSpace> forward(HostContext&, toy::Batch const&) const { return {}; }
};
struct NoForward {
  void visit(auto&&) {}
};
struct Mean {  // a loss that is a number and not a sum with a weight
  void visit(auto&&) {}
  double forward(HostContext&, toy::Batch const&) const { return 0; }
};
struct NotConst {
  void visit(auto&&) {}
  nn::Loss<HostSpace> forward(HostContext&, toy::Batch const&) { return {}; }
};
struct PredictsAndLoses {
  void visit(auto&&) {}
  double predict(HostContext&, toy::Batch const&) const { return 3; }
  nn::Loss<HostSpace> loss(HostContext&, double prediction, toy::Batch const&) const { return {prediction, 1}; }
};
struct LosesOnly {
  void visit(auto&&) {}
  nn::Loss<HostSpace> loss(HostContext&, double prediction, toy::Batch const&) const { return {prediction, 1}; }
};
struct Both : PredictsAndLoses {
  nn::Loss<HostSpace> forward(HostContext&, toy::Batch const&) const { return {5, 1}; }
};
struct NotCopyable {
  std::unique_ptr<int> state;
  void visit(auto&&) {}
  nn::Loss<HostSpace> forward(HostContext&, toy::Batch const&) const { return {}; }
};
}  // namespace

TEST_CASE("each requirement of a model is necessary") {
  CHECK(nn::Model<toy::Model, HostContext, toy::Batch>);
  CHECK(nn::HasPredict<toy::Model, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NoVisit, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NoForward, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<Mean, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NotConst, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NotCopyable, HostContext, toy::Batch>);
  CHECK_FALSE(nn::HasPredict<NoForward, HostContext, toy::Batch>);
}

TEST_CASE("a loss of the prediction replaces forward") {
  CHECK(nn::Model<PredictsAndLoses, HostContext, toy::Batch>);
  CHECK_FALSE(nn::HasForward<PredictsAndLoses, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<LosesOnly, HostContext, toy::Batch>);
  ThreadPool pool(1);
  HostContext context{memory::Stream<HostSpace>(pool)};
  CHECK(nn::loss_of(PredictsAndLoses{}, context, toy::Batch{}).sum == 3);
  CHECK(nn::loss_of(Both{}, context, toy::Batch{}).sum == 5);
}
