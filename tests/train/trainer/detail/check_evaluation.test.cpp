// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/check_evaluation.hpp>

#include <string>

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
  [[nodiscard]] static Index samples() { return 4; }
};
struct Stream : Loader {
  bool ends;
  [[nodiscard]] bool has_end() const { return ends; }
};

}  // namespace

TEST_CASE("names of a confusion matrix of 500 classes are checked, each in constant time") {
  Loader loader;
  train::ConfusionMatrix const matrix{&Photo::kind, 500};
  train::detail::MetricNames const names(train::Evaluation{loader, train::Accuracy{&Photo::kind}, matrix});
  REQUIRE(names.names().size() == 250'001);
  train::detail::check_names(names, "fit");
  CHECK_THROWS_WITH_AS(
      train::detail::check_names(train::detail::MetricNames(train::Evaluation{loader, matrix, matrix}), "fit"),
      doctest::Contains("fit: a metric is called \"confusion.0.0\", a name that another"), ConfigError);
}

TEST_CASE("a stream of unknown length is neither evaluated, nor trained on without a number of steps") {
  Loader loader, other;
  Stream endless{{}, false}, stream{{}, true};
  CHECK_NOTHROW(train::detail::check_loaders(loader, train::Evaluation{stream}, {}, 0));
  CHECK_NOTHROW(train::detail::check_loaders(stream, train::Evaluation{loader}, {}, 0));
  CHECK_NOTHROW(train::detail::check_loaders(endless, train::Evaluation{loader}, {}, 10));
  auto const* const rest =
      ": the loader reads a stream of unknown length, whose epoch would not end; give data::Streamed the number of "
      "samples in an epoch";
  auto const refused = [&](auto const& f, std::string const& caller, std::string const& or_else) {
    CHECK_THROWS_WITH_AS(f(), (caller + rest + or_else).c_str(), ConfigError);
  };
  refused([&] { train::detail::check_loaders(endless, train::NoEvaluation{}, {}, 0); }, "fit", ", or set max_steps");
  refused([&] { train::detail::check_loaders(loader, train::Evaluation{endless}, {}, 10); }, "evaluate", "");
  refused(
      [&] {
        train::detail::check_loaders(loader, train::Evaluation{other}.with("test", train::Evaluation{endless}), {}, 10);
      },
      "evaluate (test)", "");
}
