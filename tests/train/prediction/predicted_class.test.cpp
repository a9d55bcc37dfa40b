// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/prediction/predicted_class.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

using namespace lockstep;

namespace {

std::vector<float> const numbers{0, 2, 2, -1, -2, -3};
TensorView<float const, 2, HostSpace> const logits(numbers.data(), {2, 3});

}  // namespace

TEST_CASE("the predicted class has the largest logit, the first of equal ones") {
  CHECK(train::predicted_class(logits, 0) == 1);
  CHECK(train::predicted_class(logits, 1) == 0);
  std::vector<bfloat16> const halves{bfloat16(-1.0f), bfloat16(3.0f)};
  CHECK(train::predicted_class(TensorView<bfloat16 const, 2, HostSpace>(halves.data(), {1, 2}), 0) == 1);
}

TEST_CASE("a single logit predicts class 1 if it is above 0") {
  TensorView<float const, 2, HostSpace> const single(numbers.data(), {6, 1});
  CHECK(train::predicted_class(single, 0) == 0);
  CHECK(train::predicted_class(single, 1) == 1);
  auto const probabilities = train::class_probabilities(single, 1);
  REQUIRE(probabilities.size() == 2);
  CHECK(std::abs(probabilities[1] - 1 / (1 + std::exp(-2.0))) < 1e-15);
  CHECK(std::abs(probabilities[0] + probabilities[1] - 1) < 1e-15);
  CHECK(std::abs(train::class_probabilities(single, 1, 2)[1] - 1 / (1 + std::exp(-1.0))) < 1e-15);
}

TEST_CASE("probabilities are the softmax, also of large logits") {
  auto const p = train::class_probabilities(logits, 1);
  double const sum = std::exp(-1.0) + std::exp(-2.0) + std::exp(-3.0);
  for (int c = 0; c < 3; ++c) CHECK(std::abs(p[static_cast<std::size_t>(c)] - std::exp(-1.0 - c) / sum) < 1e-15);
  std::vector<float> const large{1e30f, -1e30f};
  CHECK(train::class_probabilities(TensorView<float const, 2, HostSpace>(large.data(), {1, 2}), 0) ==
        std::vector<double>{1, 0});
}

TEST_CASE("rows are the places of images and the slots of sequences") {
  std::vector<float> values = numbers;
  nn::Variable<float, 4, HostSpace> const image{{values.data(), {1, 1, 2, 3}}, {}};
  CHECK(train::predicted_class(image, 1) == 0);
  nn::Sequence<float, HostSpace> sequence;
  sequence.tokens = {{values.data(), {2, 3}}, {}};
  CHECK(train::predicted_class(sequence, 0) == 1);
}

TEST_CASE("the classes of a sequence are those of its tokens, without padding") {
  std::vector<float> values{0, 1, 5, 0, 2, 3, 9, 0, 9, 0, 9, 0};
  std::vector<std::int32_t> const lengths{3, 0};
  std::vector<Index> const positions{0, 1}, offsets{0, 1, 6};
  nn::Sequence<float, HostSpace> padded{
      {{values.data(), {6, 2}}, {}},
      nn::SequenceLayout<HostSpace>::padded(3, {lengths.data(), {2}}, {positions.data(), {2}})};
  CHECK(train::predicted_classes(padded, 0) == std::vector<Index>{1, 0, 1});
  CHECK(train::predicted_classes(padded, 1).empty());
  nn::Sequence<float, HostSpace> const ragged{
      padded.tokens, nn::SequenceLayout<HostSpace>::ragged(6, 5, {offsets.data(), {3}}, {positions.data(), {2}})};
  CHECK(train::predicted_classes(ragged, 0) == std::vector<Index>{1});
  CHECK(train::predicted_classes(ragged, 1) == std::vector<Index>{0, 1, 0, 0, 0});
  CHECK_THROWS_WITH_AS(static_cast<void>(train::predicted_classes(padded, 2)),
                       "predicted_classes: sequence 2 of a prediction with 2 sequences", ShapeError);
  CHECK_THROWS_AS(static_cast<void>(train::predicted_classes(padded, -1)), ShapeError);
}

TEST_CASE("a row that the prediction does not have is an error") {
  CHECK_THROWS_WITH_AS(static_cast<void>(train::predicted_class(logits, 2)),
                       "predicted_class: row 2 of a prediction with 2 rows of 3 logits", ShapeError);
  CHECK_THROWS_AS(static_cast<void>(train::class_probabilities(logits, -1)), ShapeError);
  CHECK_THROWS_WITH_AS(static_cast<void>(train::class_probabilities(logits, 0, 0)),
                       "class_probabilities: the temperature is 0.000000; it must be positive and finite", ConfigError);
}
