// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/replica/replica.hpp>

#include <doctest/doctest.h>

#include <lockstep/parallel/replica/optimizer_state.hpp>

#include "nn/toy.hpp"

using namespace lockstep;

namespace {
struct Fixture {
  toy::Model model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  parallel::Replica<toy::Model> replica{model, layout, {.threads = 1}};
  toy::Batch batch{{1, 2}, {0, 0}};
  Fixture() { std::ranges::fill(replica.values(), 0.5f); }
  float gradient(std::size_t ordinal) { return replica.gradient_data()[layout.entries()[ordinal].offset]; }
};
/// toy::Model with a loss of its prediction instead of a forward, and a count of its calls.
struct Counting {
  toy::Model model;
  mutable int runs = 0;
  void visit(auto&& each) { each("model", model); }
  template <class Context>
  auto predict(Context& context, toy::Batch const& batch) const {
    ++runs;
    return model.predict(context, batch);
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& prediction, toy::Batch const& batch) const {
    return toy::squared_error(context, prediction, batch.targets);
  }
};
struct CountRows {
  double rows = 0;
  void add(auto const& prediction, toy::Batch const&) { rows += static_cast<double>(prediction.extent(0)); }
};
}  // namespace

TEST_CASE("micro-batches of a step accumulate losses and gradients; the next step starts over") {
  Fixture f;
  for (int step = 0; step < 2; ++step) {
    f.replica.run(f.batch, {.key = 1, .first = true, .last = false});
    f.replica.run(f.batch, {.key = 1, .first = false, .last = true});
    CHECK(f.replica.loss().weight == 4);
    CHECK(f.replica.loss().sum == 2 * 0.75 * 0.75 * 5);
    CHECK(f.gradient(1) == 30);
  }
}

TEST_CASE("the loss is known before backward begins, and gradients of unused parameters are zeroed on request") {
  Fixture f;
  f.replica.gradient_data()[f.layout.entries()[0].offset] = 9;
  struct Seen {
    Fixture* f;
    double weight = 0;
    float gradient = -1;
  } seen{&f};
  f.replica.run(f.batch, {},
                {[](void* self) {
                   auto& s = *static_cast<Seen*>(self);
                   s.weight = s.f->replica.loss().weight, s.gradient = s.f->gradient(1);
                 },
                 &seen});
  CHECK(seen.weight == 2);
  CHECK(seen.gradient == 0);
  CHECK(f.gradient(0) == 9);
  f.replica.zero_unused();
  CHECK(f.gradient(0) == 0);
  CHECK(f.gradient(1) == 15);
}

TEST_CASE("evaluation returns loss and prediction, and changes nothing") {
  Fixture f;
  CountRows metric;
  auto const loss = f.replica.evaluate(f.batch, metric);
  CHECK(loss.sum == 0.75 * 0.75 * 5);
  CHECK(metric.rows == 2);
  CHECK(f.gradient(1) == 0);
  CHECK(f.replica.evaluate(f.batch).sum == loss.sum);
}

TEST_CASE("a model with a loss of its prediction trains equally, and is evaluated in one run") {
  Fixture f;
  Counting model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<Counting> replica(model, layout, {.threads = 1});
  std::ranges::fill(replica.values(), 0.5f);
  f.replica.run(f.batch, {});
  replica.run(f.batch, {});
  CHECK(model.runs == 1);
  CHECK(replica.loss().sum == f.replica.loss().sum);
  CHECK(replica.gradient_data()[layout.entries()[1].offset] == f.gradient(1));
  CountRows metric, other;
  CHECK(replica.evaluate(f.batch, metric, other).sum == f.replica.evaluate(f.batch).sum);
  CHECK(model.runs == 2);
  CHECK(metric.rows == 2);
  CHECK(other.rows == 2);
}
