// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/best_evaluation.hpp>

#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
/// Returns which of the evaluations were the best when they were made, and how many came after the last of these.
struct Judged {
  std::vector<bool> best;
  Index since;
};
Judged judge(std::string by, std::vector<double> const& losses, std::vector<double> const& scores,
             train::BestValue of_score = train::BestValue::largest) {
  train::BestEvaluation best(std::move(by), of_score);
  Judged out{{}, 0};
  for (std::size_t i = 0; i < losses.size(); ++i)
    out.best.push_back(best.add({.loss = losses[i], .metrics = {{"other", 1.0}, {"score", scores[i]}}}));
  out.since = best.evaluations_since_best();
  return out;
}
constexpr double none = std::numeric_limits<double>::quiet_NaN();
}  // namespace

TEST_CASE("the best has the least loss, or a metric's largest or smallest value, and of equals the first one counts") {
  auto const by_loss = judge("loss", {3, 2, 2, 1, 4}, {1, 1, 1, 1, 9});
  CHECK(by_loss.best == std::vector{true, true, false, true, false});
  CHECK(by_loss.since == 1);
  auto const by_score = judge("score", {1, 2, 3, 4, 5}, {-3, -1, -1, -2, -1.5});
  CHECK(by_score.best == std::vector{true, true, false, false, false});
  CHECK(by_score.since == 3);
  auto const by_error = judge("score", {1, 1, 1, 1, 1}, {3, 1, 1, 2, 0.5}, train::BestValue::smallest);
  CHECK(by_error.best == std::vector{true, true, false, false, true});
  CHECK(judge("loss", {3, 2, 4}, {1, 2, 3}, train::BestValue::smallest).best == std::vector{true, true, false});
}

TEST_CASE("an evaluation that is not finite is never the best, not even the first one") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(judge("loss", {none, none, 7, none, 8}, {0, 0, 0, 0, 0}).best == std::vector{false, false, true, false, false});
  CHECK(judge("loss", {none, none}, {0, 0}).since == 2);
  CHECK(judge("loss", {infinite, 7, -infinite}, {0, 0, 0}).best == std::vector{false, true, false});
  CHECK(judge("score", {0, 0, 0}, {none, -1e300, none}).best == std::vector{false, true, false});
  CHECK(judge("score", {0, 0, 0}, {none, 1e300, none}, train::BestValue::smallest).best ==
        std::vector{false, true, false});
  CHECK(judge("score", {none, 0, infinite}, {3, 1, 2}).best ==
        std::vector{false, true, false});  // nan loss, good score
}

TEST_CASE("an evaluation without the metric, as before a resume by a new one, does not count") {
  for (auto const smallest : {false, true}) {
    train::BestEvaluation best("score", smallest ? train::BestValue::smallest : train::BestValue::largest);
    train::EvaluationReport const before{.loss = 0.2},
        after{.loss = 0.2, .metrics = {{"score", smallest ? 0.8 : -0.8}}};
    CHECK_FALSE(best.add(before));
    CHECK(best.evaluations_since_best() == 0);
    CHECK(best.add(after));
    CHECK_FALSE(best.add(before));
    CHECK(best.evaluations_since_best() == 0);
  }
}

TEST_CASE("an improvement must exceed min_delta, compared with the best value so far") {
  train::BestEvaluation by_loss("loss", train::BestValue::largest, 0.1);
  std::vector<bool> better;
  for (double const loss : {1.0, 0.95, 0.9, 0.85, 0.7}) better.push_back(by_loss.add({.loss = loss}));
  CHECK(better == std::vector{true, false, false, true, true});
  CHECK(by_loss.evaluations_since_best() == 0);
}
