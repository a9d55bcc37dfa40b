// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/confusion_matrix.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>

using namespace lockstep;

namespace {
struct Window {
  std::int32_t activity;
};
static_assert(train::Metric<train::ConfusionMatrix<Window, std::int32_t>>);

using Counts = std::vector<std::pair<std::string, double>>;

template <class M>
Counts counts_of(M const& metric) {
  Counts out;
  metric.values([&](std::string const& name, double count) { out.emplace_back(name, count); });
  return out;
}
}  // namespace

TEST_CASE("each label is counted at its prediction, by name and row by row") {
  std::vector<Window> const windows{{0}, {2}, {1}, {2}, {-1}, {2}};
  std::vector<std::size_t> const predicted{0, 1, 1, 1, 0, 2};
  std::vector<float> logits(6 * 3);
  for (std::size_t i = 0; i < 6; ++i) logits[3 * i + predicted[i]] = 1;
  train::ConfusionMatrix confusion{&Window::activity, 3, -1};
  data::Collated const batch{data::PadCollate{}, windows};
  confusion.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {6, 3}}, nullptr}, batch.batch());
  CHECK(counts_of(confusion) == Counts{{"confusion.0.0", 1},
                                       {"confusion.0.1", 0},
                                       {"confusion.0.2", 0},
                                       {"confusion.1.0", 0},
                                       {"confusion.1.1", 1},
                                       {"confusion.1.2", 0},
                                       {"confusion.2.0", 0},
                                       {"confusion.2.1", 2},
                                       {"confusion.2.2", 1}});
}

TEST_CASE("one logit decides between two classes, and an invalid label is refused") {
  std::vector<float> logits{-1, 2};
  train::ConfusionMatrix confusion{&Window::activity, 2};
  nn::Variable<float, 2, HostSpace> const prediction{{logits.data(), {2, 1}}, nullptr};
  data::Collated const batch{data::PadCollate{}, std::vector<Window>{{1}, {1}}};
  confusion.add(prediction, batch.batch());
  CHECK(counts_of(confusion) ==
        Counts{{"confusion.0.0", 0}, {"confusion.0.1", 0}, {"confusion.1.0", 1}, {"confusion.1.1", 1}});
  data::Collated const wrong{data::PadCollate{}, std::vector<Window>{{1}, {2}}};
  CHECK_THROWS_WITH_AS(confusion.add(prediction, wrong.batch()),
                       "ConfusionMatrix: a label is 2; the classes are 0 to 1", DataError);
  CHECK_THROWS_AS((train::ConfusionMatrix{&Window::activity, 1}), ConfigError);
  for (Index const classes : {Index{4097}, Index{1} << 32})  // their pairs exceed any memory, and any integer
    CHECK_THROWS_WITH_AS((train::ConfusionMatrix{&Window::activity, classes}), doctest::Contains("the limit is 4096"),
                         ConfigError);
}
