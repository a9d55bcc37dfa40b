// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/module/initialize.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace lockstep;

namespace {
struct Model {
  nn::Parameter one{{40'000}, nn::Initializer::uniform(0.5)}, two{{40'000}, nn::Initializer::normal(0.02)},
      three{{5}, nn::Initializer::constant(1)};
  void visit(auto&& each) { each("one", one), each("two", two), each("three", three); }
};
struct Other {
  nn::Parameter two{{40'000}, nn::Initializer::normal(0.02)};
  void visit(auto&& each) { each("two", two); }
};
template <class M>
std::vector<float> start(M& model, std::uint64_t seed) {
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), 0.0f);
  nn::initialize(layout, seed, values.data());
  return values;
}
struct Large {
  nn::Parameter table{{1'200'000}, nn::Initializer::uniform(1)}, rest{{7}, nn::Initializer::normal(1)};
  void visit(auto&& each) { each("table", table), each("rest", rest); }
};
struct Given {
  nn::Parameter p;
  nn::Buffer b, last{{2}, nn::Initializer::constant(9)};
  void visit(auto&& each) { each("p", p), each("b", b), each("last", last); }
};
struct Moments {
  double mean, deviation, largest;
};
Moments moments(std::vector<float> const& values, nn::Parameter const& p) {
  double sum = 0, squares = 0, largest = 0;
  for (Index i = 0; i < p.size(); ++i) {
    double const x = values[static_cast<std::size_t>(p.offset + i)];
    sum += x, squares += x * x, largest = std::max(largest, std::abs(x));
  }
  auto const n = static_cast<double>(p.size());
  return {sum / n, std::sqrt(squares / n - sum / n * sum / n), largest};
}
}  // namespace

TEST_CASE("initial values have the mean, spread and bound of their distribution") {
  Model model;
  auto const values = start(model, 1);
  // The mean of n values of deviation s has a deviation of s / sqrt(n), and the deviation at most s / sqrt(n) too; 5 of
  // these.
  auto const one = moments(values, model.one), two = moments(values, model.two);
  double const s1 = 0.5 / std::sqrt(3.0), n = std::sqrt(40'000.0);
  CHECK(std::abs(one.mean) < 5 * s1 / n);
  CHECK(std::abs(one.deviation - s1) < 5 * s1 / n);
  CHECK(one.largest <= 0.5);
  CHECK(std::abs(two.mean) < 5 * 0.02 / n);
  CHECK(std::abs(two.deviation - 0.02) < 5 * 0.02 / n);
  CHECK(values[static_cast<std::size_t>(model.three.offset + 4)] == 1.0f);
}

TEST_CASE("an initial value depends on seed and name, not on the rest of the model") {
  Model model;
  Other other;
  auto const a = start(model, 1), b = start(model, 1), c = start(model, 2), d = start(other, 1);
  CHECK(a == b);
  CHECK(a != c);
  CHECK(std::equal(d.begin(), d.end(), a.begin() + model.two.offset));
}

TEST_CASE("large initial values are equal for any number of threads") {
  Large model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(nn::initial_values(layout, 3, 3) == nn::initial_values(layout, 3));
}

TEST_CASE("given numbers are the initial values of parameters and buffers, for any seed") {
  std::vector<float> const table{1, -2, 3, 4, 5, 6};
  Given model{{{2, 3}, nn::Initializer::given(table.data())}, {{4}, nn::Initializer::given(table.data() + 2)}};
  auto const layout = nn::ParameterLayout::of(model);
  for (std::uint64_t const seed : {1U, 2U}) {
    auto const values = start(model, seed);
    CHECK(std::equal(table.begin(), table.end(), values.begin() + model.p.offset));
  }
  std::vector<float> buffers(static_cast<std::size_t>(layout.buffer_size()), -1.0f);
  nn::initialize_buffers(layout, buffers.data());
  CHECK(std::equal(table.begin() + 2, table.end(), buffers.begin() + model.b.offset));
  CHECK(buffers[static_cast<std::size_t>(model.last.offset) + 1] == 9);
}
