// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/indexing/gather_rows.hpp>

#include <doctest/doctest.h>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::Trial;

namespace {

using Indices = std::vector<std::int32_t>;

/// Rows of a learned matrix, read several times.
struct Model {
  nn::Parameter x;
  int uses = 1;
  Model(Index rows, Index width, int times = 1) : x{{rows, width}, nn::Initializer::normal(1)}, uses(times) {}
  void visit(auto&& each) { each("x", x); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Indices const& indices) const {
    TensorView<std::int32_t const, 1, HostSpace> const view{indices.data(), {std::ssize(indices)}};
    auto const in = lockstep_test::learned(context, x);
    nn::Loss<HostSpace> loss;
    for (int use = 0; use < uses; ++use)
      loss += lockstep_test::irregular_loss(context, nn::gather_rows(context, in, view));
    return loss;
  }
};

Indices many(Index count, std::int32_t rows) {
  Indices out;
  for (Index i = 0; i < count; ++i) out.push_back(static_cast<std::int32_t>(i % 3 == 0 ? 2 : (5 * i + 1) % rows));
  return out;
}

}  // namespace

TEST_CASE("gather_rows: gradients, with equal indices and rows without any, used once and twice") {
  for (auto const& indices : {Indices{3, 0, 3, 1, 3}, Indices{}, Indices{4}, many(100, 5)})
    for (int uses : {1, 2}) {
      auto const result = check_model(Model(5, 3, uses), indices);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("gather_rows: rows in the order of the indices") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<float> const x{0, 1, 10, 11, 20, 21};
  Indices const indices{2, 0, 2};
  auto const in = context.input(TensorView<float const, 2, HostSpace>{x.data(), {3, 2}});
  auto const y = nn::gather_rows(context, in, {indices.data(), {3}});
  CHECK(std::vector<float>(y.value.data, y.value.data + 6) == std::vector<float>{20, 21, 0, 1, 20, 21});
  CHECK(nn::gather_rows(context, in, {nullptr, {0}}).value.extent == Extents<2>{0, 2});
}

TEST_CASE("gather_rows: gradients have equal bits for any number of threads") {
  auto const indices = many(5000, 300);
  Trial<Model, float> one(Model(300, 33), 1), three(Model(300, 33), 3);
  CHECK(one.step(indices).sum == three.step(indices).sum);
  CHECK(one.gradients == three.gradients);
}

TEST_CASE("gather_rows: 16-bit activations give the gradients of float for exact numbers") {
  Trial<Model, bfloat16> low(Model(5, 2));
  Trial<Model, float> full(Model(5, 2));
  for (std::size_t i = 0; i < low.values.size(); ++i) low.values[i] = full.values[i] = static_cast<float>(i) - 4;
  auto const run = [](auto& trial) {
    auto& context = trial.context();
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
    Indices const indices{1, 1, 4};
    auto const y = nn::gather_rows(context, lockstep_test::learned(context, trial.model.x), {indices.data(), {3}});
    auto const dy = context.gradient(y);
    for (Index i = 0; i < 6; ++i)
      dy.data[i] = static_cast<std::remove_cvref_t<decltype(*dy.data)>>(static_cast<float>(i));
    nn::Pass(context).backward({});
    return trial.gradients;
  };
  CHECK(run(low) == run(full));
  full.gradients.resize(10);  // without the arena's alignment
  CHECK(full.gradients == std::vector<float>{0, 0, 2, 4, 0, 0, 0, 0, 4, 5});
}

TEST_CASE("gather_rows: an index without a row is refused with its number and value") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = context.variable<2>({3, 2});
  for (std::int32_t wrong : {-1, 3}) {
    Indices const indices{0, wrong};
    CHECK_THROWS_WITH_AS(
        static_cast<void>(nn::gather_rows(context, x, {indices.data(), {2}})),
        doctest::Contains(("index 1 is " + std::to_string(wrong) + "; indices are from 0 to 2").c_str()), DataError);
  }
}
