// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/parameter_gradients.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <vector>

#include <lockstep/memory/space.hpp>

using namespace lockstep;

namespace {

struct Model {
  nn::Parameter weight{{2, 3}, nn::Initializer::constant(0)};
  nn::Parameter table{
      .shape = {5, 2}, .initializer = nn::Initializer::constant(0), .gradient_form = nn::GradientForm::by_rows};
  void visit(auto&& each) {
    each("weight", weight);
    each("table", table);
  }
};

struct Fixture {
  Model model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<float> arena = std::vector<float>(static_cast<std::size_t>(layout.size()), 9.0f);
  nn::ParameterGradients<float, HostSpace> gradients;
  Fixture() { gradients.bind(arena.data(), layout); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "the first writer of a step overwrites, later ones add, and a new step overwrites again") {
  for (int step = 0; step < 2; ++step) {
    gradients.begin_step();
    CHECK_FALSE(gradients.written(0));
    auto const first = gradients.target(model.weight);
    CHECK(first.data == arena.data() + model.weight.offset);
    CHECK(first.write == Write::overwrite);
    CHECK(gradients.target(model.weight).write == Write::add);
    CHECK(gradients.written(0));
    CHECK_FALSE(gradients.written(1));
  }
}

TEST_CASE_FIXTURE(Fixture, "a row-sparse table gradient is completed for a dense writer") {
  gradients.begin_step();
  auto const rows = gradients.target_by_rows(model.table);
  REQUIRE(rows.touched.words != nullptr);
  std::array<std::int32_t, 2> const written{1, 3};
  rows.touched.insert(written);
  auto const dense = gradients.target(model.table);
  CHECK(dense.write == Write::add);
  for (Index row = 0; row < 5; ++row)
    for (Index c = 0; c < 2; ++c) CHECK(dense.data[row * 2 + c] == (row == 1 || row == 3 ? 9.0f : 0.0f));
  CHECK(gradients.touched()[0].contains(0));
}

TEST_CASE_FIXTURE(Fixture, "above a limit of parameters, tables are dense") {
  gradients.bind(arena.data(), 2);
  gradients.begin_step();
  auto const rows = gradients.target_by_rows(model.table);
  CHECK(rows.touched.words == nullptr);
  CHECK(rows.write == Write::overwrite);
  CHECK(gradients.touched().empty());
}

TEST_CASE_FIXTURE(Fixture, "the sink is called once per parameter, after its last use") {
  struct Heard {
    int times = 0;
    Index offset = -1, count = 0;
  } recorder;
  gradients.set_sink({[](void* self, Index offset, Index count) {
                        auto& h = *static_cast<Heard*>(self);
                        ++h.times, h.offset = offset, h.count = count;
                      },
                      &recorder});
  gradients.begin_step();
  gradients.begin_micro_batch();
  gradients.add_use(model.weight);
  gradients.add_use(model.weight);
  static_cast<void>(gradients.target(model.weight));
  gradients.finish_use(model.weight);
  CHECK(recorder.times == 0);
  gradients.finish_use(model.weight);
  CHECK(recorder.times == 1);
  CHECK(recorder.offset == model.weight.offset);
  CHECK(recorder.count == 6);

  gradients.add_use(model.table);  // used, but its output was not: nothing was written
  gradients.finish_use(model.table);
  nn::Parameter const absent{{1}, nn::Initializer::constant(0)};
  gradients.add_use(absent);
  gradients.finish_use(absent);
  CHECK(recorder.times == 1);
}
