// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/accuracy.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

#include "labelled.hpp"

using namespace lockstep;
using Batch = lockstep_test::LabelBatch;
using Sample = lockstep_test::Labelled;

namespace {
using Accuracy = train::Accuracy<Sample, int>;
static_assert(train::Metric<Accuracy>);

double accuracy(std::vector<float> logits, Index classes, std::vector<int> labels) {
  Accuracy metric{&Sample::label};
  nn::Variable<float, 2, HostSpace> const prediction{{logits.data(), {static_cast<Index>(labels.size()), classes}},
                                                     nullptr};
  metric.add(prediction, Batch{labels});
  return metric.value();
}
}  // namespace

TEST_CASE("accuracy is the fraction of rows whose largest logit is the label's") {
  CHECK(accuracy({1, 2, 3, 3, 2, 1, 0, 5, 0}, 3, {2, 0, 0}) == doctest::Approx(2.0 / 3));
  CHECK(accuracy({}, 3, {}) == 0);
  CHECK(accuracy({1, 1}, 2, {0}) == 1);  // the first of equals
  CHECK(accuracy({1, 1}, 2, {1}) == 0);
}

TEST_CASE("a single logit means 1 above 0") {
  CHECK(accuracy({-1, 0, 0.5f, 3}, 1, {0, 0, 1, 0}) == 0.75);
  CHECK(accuracy({-1, 2}, 1, {1, 0}) == 0);
}

TEST_CASE("real labels must be whole numbers") {
  struct Clicked {
    float clicked;
  };
  struct Clicks {
    std::vector<float> labels;
    struct Column {
      TensorView<float const, 1, HostSpace> values;
    };
    Column operator[](float Clicked::*) const { return {{labels.data(), {std::ssize(labels)}}}; }
  };
  std::vector<float> logits{-1, 2, 3};
  nn::Variable<float, 2, HostSpace> const prediction{{logits.data(), {3, 1}}, nullptr};
  train::Accuracy accuracy{&Clicked::clicked};
  accuracy.add(prediction, Clicks{{0, 1, 0}});
  CHECK(accuracy.value() == doctest::Approx(2.0 / 3));
  train::Accuracy positives{&Clicked::clicked, 0};
  for (float const label : {0.5f, -0.5f, 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK_THROWS_WITH_AS(accuracy.add(prediction, Clicks{{1, label, 0}}),
                         doctest::Contains("; labels of classes are whole numbers"), DataError);
    CHECK_THROWS_AS(positives.add(prediction, Clicks{{1, label, 0}}), DataError);
  }
  CHECK_THROWS_WITH_AS(accuracy.add(prediction, Clicks{{1, 0.5f, 0}}), doctest::Contains("Accuracy: a label is 0.5;"),
                       DataError);
}

TEST_CASE("a row without a label does not count") {
  struct Optional {
    struct Column {
      TensorView<int const, 1, HostSpace> values;
      TensorView<bool const, 1, HostSpace> present;
    } column;
    Column operator[](int lockstep_test::Labelled::*) const { return column; }
  };
  std::vector<int> const labels{1, 0, 0};
  bool const present[]{true, false, true};
  std::vector<float> logits{0, 1, 1, 0, 0, 1};
  train::Accuracy accuracy{&lockstep_test::Labelled::label};
  accuracy.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {3, 2}}, nullptr},
               Optional{{{labels.data(), {3}}, {present, {3}}}});
  CHECK(accuracy.value() == 0.5);
}

TEST_CASE("another library's prediction is a matrix of numbers") {
  struct Foreign {
    struct {
      float const* data;
    } value;
    Index rows;
    [[nodiscard]] Index extent(int axis) const { return axis == 0 ? rows : 2; }
  };
  std::vector<float> const logits{1, 0, 0, 1};
  Accuracy metric{&Sample::label};
  metric.add(Foreign{{logits.data()}, 2}, Batch{{0, 0}});
  CHECK(metric.value() == 0.5);
}

TEST_CASE("for sequences it is the fraction of tokens, without padding") {
  struct Text {
    std::vector<std::int32_t> tags;
  };
  struct Texts {
    std::vector<std::int32_t> tags;
    struct Column {
      TensorView<std::int32_t const, 1, HostSpace> values;
    };
    Column operator[](std::vector<std::int32_t> Text::*) const {
      return {{tags.data(), {static_cast<Index>(tags.size())}}};
    }
  };
  using Layout = kernel::SequenceLayout<HostSpace>;
  std::vector<float> logits{0, 1, 0, 1, 1, 0, 1, 0};  // predicts 1, 1, 0, 0
  nn::Variable<float, 2, HostSpace> const tokens{{logits.data(), {4, 2}}, nullptr};
  std::vector<std::int32_t> const lengths{2, 1};
  std::vector<Index> const positions{0, 1}, offsets{0, 3, 4};
  nn::Sequence<float, HostSpace> const padded{tokens,
                                              Layout::padded(2, {lengths.data(), {2}}, {positions.data(), {2}})},
      ragged{tokens, Layout::ragged(4, 3, {offsets.data(), {3}}, {positions.data(), {2}})};
  auto const share = [&](auto const& prediction, std::vector<std::int32_t> tags, std::optional<Index> ignored = {}) {
    train::Accuracy metric{&Text::tags, ignored};
    metric.add(prediction, Texts{std::move(tags)});
    return metric.value();
  };
  CHECK(share(padded, {1, 0, 0, 1}) == doctest::Approx(2.0 / 3));
  CHECK(share(padded, {1, 0, 0, 0}) == doctest::Approx(2.0 / 3));  // the last slot is padding
  CHECK(share(ragged, {1, 0, 0, 1}) == 0.5);
  CHECK(share(ragged, {1, -100, 0, 1}, -100) == doctest::Approx(2.0 / 3));
  CHECK_THROWS_WITH_AS(share(ragged, {1, 0, 0}),
                       "Accuracy: the prediction has 4 slots and there are 3 labels; each needs one", ShapeError);
}

TEST_CASE("its totals add up over devices and ranks") {
  Accuracy metric{&Sample::label};
  CHECK(metric.value() == 0);
  metric.totals()[0] += 3;
  metric.totals()[1] += 4;
  CHECK(metric.value() == 0.75);
  CHECK(std::string(metric.name()) == "accuracy");
}
