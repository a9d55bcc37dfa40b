// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/evaluation.hpp>

#include <doctest/doctest.h>

#include <lockstep/train/accuracy.hpp>

using namespace lockstep;

namespace {

/// Has what a trainer asks of a loader.
struct Loader {
  using Batch = int;
  void start(data::Split const&, Index, Index, Index) {}
  Index steps(data::Split const&) { return 0; }
  Batch* next() { return nullptr; }
};

}  // namespace

TEST_CASE("an evaluation refers to its loader and holds its metrics") {
  Loader loader;
  struct Sample {
    int label;
  };
  train::Evaluation const evaluation{loader, train::Accuracy{&Sample::label}};
  CHECK(&evaluation.loader == &loader);
  CHECK(std::tuple_size_v<decltype(evaluation.metrics)> == 1);
  CHECK(std::tuple_size_v<decltype(train::Evaluation{loader}.metrics)> == 0);
}
