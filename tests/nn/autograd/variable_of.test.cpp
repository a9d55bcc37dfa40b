// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/variable_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <lockstep/core/float16.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/contrastive/dot_products.hpp>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {
// Dot products of a parameter with itself and with another, so that its gradient has several writers.
struct Model {
  nn::Parameter centers{{3, 2}, nn::Initializer::normal(1)}, others{{4, 2}, nn::Initializer::normal(1)};
  void visit(auto&& each) { each("centers", centers), each("others", others); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const&) const {
    auto const a = nn::variable_of<2>(context, centers), b = nn::variable_of<2>(context, others);
    auto const again = nn::variable_of<2>(context, centers);
    auto loss = irregular_loss(context, nn::dot_products(context, a, b));
    loss += irregular_loss(context, nn::dot_products(context, again, b));
    return loss;
  }
};
struct Wrong {
  nn::Parameter bias{{3}, {}};
  void visit(auto&& each) { each("bias", bias); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const&) const {
    return irregular_loss(context, nn::variable_of<2>(context, bias));
  }
};
TokenBatch const batch({1}, 1, 11);
}  // namespace

TEST_CASE("variable_of: gradients reach the parameter, from several uses") {
  auto const result = check_model(Model{}, batch);
  CAPTURE(result.where);
  CHECK(result.ok());
  CHECK(result.checked == 14);
}

TEST_CASE("variable_of: the values are those of the parameter, rounded once in 16 bits") {
  ThreadPool pool(1);
  nn::Context<float16, HostSpace> context{memory::Stream<HostSpace>(pool)};
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), 0.1f), gradients(values.size());
  context.parameters().bind(values.data(), gradients.data(), layout.entries().size());
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = nn::variable_of<2>(context, model.others);
  CHECK(x.value.extent == Extents<2>{4, 2});
  CHECK(static_cast<float>(x.value(3, 1)) == static_cast<float>(float16(0.1f)));
}

TEST_CASE("variable_of: another rank is refused") {
  Trial<Wrong, float> trial{Wrong{}};
  CHECK_THROWS_WITH_AS(static_cast<void>(trial.step(batch)),
                       "Context: forward reads a tensor of shape [3] as one of 2 dimensions: call "
                       "context.value<1>, and reshape the view",
                       ShapeError);
}
