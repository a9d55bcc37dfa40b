// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/check_evaluation.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/metrics/confusion_matrix.hpp>
#include <lockstep/train/trainer/evaluation.hpp>

using namespace lockstep;

namespace {

struct Photo {
  int kind;
};

struct Loader {
  struct Batch {};
  void start(data::Split const&, Index, Index, Index) {}
  [[nodiscard]] static Index steps(data::Split const&) { return 1; }
  [[nodiscard]] static Batch next() { return {}; }
};

}  // namespace

TEST_CASE("names of a confusion matrix of 1,000 classes are checked, each in constant time") {
  Loader loader;
  train::ConfusionMatrix const matrix{&Photo::kind, 1000};
  train::detail::MetricNames const names(train::Evaluation{loader, train::Accuracy{&Photo::kind}, matrix});
  REQUIRE(names.names().size() == 1'000'001);
  train::detail::check_names(names, "fit");
  CHECK_THROWS_WITH_AS(
      train::detail::check_names(train::detail::MetricNames(train::Evaluation{loader, matrix, matrix}), "fit"),
      doctest::Contains("fit: a metric is called \"confusion.0.0\", a name that another"), ConfigError);
}
