// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/model.hpp>

#include <doctest/doctest.h>

#include <memory>

#include "toy.hpp"

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
struct NotCopyable {
  std::unique_ptr<int> state;
  void visit(auto&&) {}
  nn::Loss<HostSpace> forward(HostContext&, toy::Batch const&) const { return {}; }
};
}  // namespace

TEST_CASE("each requirement of a model is needed") {
  CHECK(nn::Model<toy::Model, HostContext, toy::Batch>);
  CHECK(nn::HasPredict<toy::Model, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NoVisit, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NoForward, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<Mean, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NotConst, HostContext, toy::Batch>);
  CHECK_FALSE(nn::Model<NotCopyable, HostContext, toy::Batch>);
  CHECK_FALSE(nn::HasPredict<NoForward, HostContext, toy::Batch>);
}
