// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/graded_ndcg.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

using namespace lockstep;

namespace {
struct Query {
  std::vector<float> scores, relevance;
};
using Metric = train::GradedNdcg<Query, std::vector<float>>;
static_assert(train::Metric<Metric>);

template <class Collate>
void add(Metric& metric, Collate const& collate, std::vector<Query> const& queries) {
  data::Collated const collated{collate, queries};
  auto const& batch = collated.batch();
  auto const& scores = batch[&Query::scores];
  nn::Sequence<float, HostSpace> const prediction{
      {{const_cast<float*>(scores.values.data), {scores.values.size(), 1}}, nullptr},
      nn::layout_of<HostSpace>(scores, batch.positions())};
  metric.add(prediction, batch);
}
double of(std::vector<Query> const& queries, Index k, train::NdcgGain gain = train::NdcgGain::exponential) {
  Metric padded{&Query::relevance, k, gain}, ragged = padded;
  add(padded, data::PadCollate{}, queries);
  add(ragged, data::RaggedCollate{}, queries);
  CHECK(padded.value() == ragged.value());
  return padded.value();
}
}  // namespace

TEST_CASE("it is the mean over the queries of DCG / ideal DCG of the first k documents") {
  Query const three{{0.1f, 0.3f, 0.2f}, {3, 0, 1}}, two{{2, 1}, {1, 0}};
  // In the order of scores: gains 0, 1, 7. The ideal order: 7, 1, 0.
  double const ideal = 7 + 1 / std::log2(3), found = 1 / std::log2(3) + 7 / std::log2(4);
  CHECK(of({three}, 10) == doctest::Approx(found / ideal));
  CHECK(of({three}, 2) == doctest::Approx(1 / std::log2(3) / ideal));
  CHECK(of({three, two}, 10) == doctest::Approx((found / ideal + 1) / 2));
  double const linear = (1 / std::log2(3) + 3 / std::log2(4)) / (3 + 1 / std::log2(3));
  CHECK(of({three}, 10, train::NdcgGain::linear) == doctest::Approx(linear));
  CHECK(std::string(Metric{&Query::relevance, 5}.name()) == "graded_ndcg_5");
}

// As scikit-learn's ndcg_score(…, ignore_ties=False), whose gains are linear.
TEST_CASE("documents of equal scores share the mean of their gains") {
  auto const expected = [](Index k) {
    std::array<double, 4> const shared{1, 5.0 / 3, 5.0 / 3, 5.0 / 3}, best{3, 2, 1, 0};
    double found = 0, ideal = 0;
    for (std::size_t i = 0; i < 4 && static_cast<Index>(i) < k; ++i) {
      found += shared[i] / std::log2(static_cast<double>(i) + 2);
      ideal += best[i] / std::log2(static_cast<double>(i) + 2);
    }
    return found / ideal;
  };
  for (Index k : {1, 2, 3, 4, 9}) {
    double const value = of({{{0, 0, 1, 0}, {3, 0, 1, 2}}}, k, train::NdcgGain::linear);
    CHECK(value == doctest::Approx(expected(k)));
    CHECK(value == of({{{0, 1, 0, 0}, {2, 1, 3, 0}}}, k, train::NdcgGain::linear));  // another order
  }
  CHECK(of({{{1, 1}, {1, 0}}}, 1) == 0.5);  // a constant score is no perfect order
}

TEST_CASE("queries without a relevant document do not count") {
  CHECK(of({{{1, 2}, {0, 0}}, {{}, {}}, {{2, 1}, {1, 0}}}, 10) == 1);
  CHECK(of({{{1, 2}, {0, 0}}}, 10) == 0);
  CHECK(Metric{&Query::relevance, 3}.value() == 0);
}

TEST_CASE("rows with a fixed number of documents are Variables") {
  struct Fixed {
    std::array<float, 3> relevance;
  };
  data::Collated const collated{data::PadCollate{}, std::vector<Fixed>{{{3, 0, 1}}, {{1, 0, 0}}}};
  std::vector<float> scores{0.1f, 0.3f, 0.2f, 3, 2, 1};
  train::GradedNdcg metric{&Fixed::relevance, 10};
  metric.add(nn::Variable<float, 2, HostSpace>{{scores.data(), {2, 3}}, nullptr}, collated.batch());
  CHECK(metric.value() == doctest::Approx((of({{{0.1f, 0.3f, 0.2f}, {3, 0, 1}}}, 10) + 1) / 2));
}

TEST_CASE("scores that are NaN, negative relevances and unequal lengths are refused") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH_AS(of({{{1, nan}, {1, 0}}}, 3), doctest::Contains("GradedNdcg: the model predicts a logit that is"),
                       DataError);
  CHECK_THROWS_WITH_AS(of({{{1}, {1}}, {{1, 2}, {1, -1}}}, 3),
                       "GradedNdcg: document 1 of sample 1 has the relevance -1; relevances are at least 0", DataError);
  CHECK_THROWS_WITH_AS(of({{{1, 2}, {1, nan}}}, 3), doctest::Contains("has the relevance nan"), DataError);
  CHECK_THROWS_WITH_AS(of({{{1}, {2000}}}, 3), doctest::Contains("NdcgGain::linear"), DataError);
  CHECK_THROWS_WITH_AS(of({{{1, 2, 3}, {1023, 1023, 1023}}}, 3), doctest::Contains("whose gain is above 1e300"),
                       DataError);  // their sum would be infinite
  CHECK(of({{{1, 2, 3}, {990, 990, 990}}}, 3) == 1);
  CHECK(of({{{1}, {2000}}}, 3, train::NdcgGain::linear) == 1);
  CHECK_THROWS_WITH_AS(of({{{1, 2}, {1}}}, 3), doctest::Contains("each token needs one"), ShapeError);
  CHECK_THROWS_WITH_AS(Metric(&Query::relevance, 0), "GradedNdcg: k is 0; it must be at least 1", ConfigError);
}
