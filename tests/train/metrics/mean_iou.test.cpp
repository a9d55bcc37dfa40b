// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/mean_iou.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
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
struct Scene {
  std::array<std::int32_t, 4> mask;  // 2 x 2 places
};
static_assert(train::Metric<train::MeanIoU<Scene, std::array<std::int32_t, 4>>>);
}  // namespace

TEST_CASE("intersection over union of each class, on average over the classes") {
  std::vector<Scene> const scenes{{{0, 0, 1, 1}}, {{0, 2, 2, 1}}};
  std::vector<int> const predicted{0, 1, 1, 1, 0, 2, 0, 1};
  std::vector<float> logits(8 * 4);
  for (std::size_t i = 0; i < 8; ++i) logits[4 * i + static_cast<std::size_t>(predicted[i])] = 1;
  train::MeanIoU iou{&Scene::mask, 4};
  data::Collated const batch{data::PadCollate{}, scenes};
  iou.add(nn::Variable<float, 4, HostSpace>{{logits.data(), {2, 2, 2, 4}}, nullptr}, batch.batch());
  // class 0: 2 of 4, class 1: 3 of 4, class 2: 1 of 2; class 3 is absent
  CHECK(iou.value() == doctest::Approx((2.0 / 4 + 3.0 / 4 + 1.0 / 2) / 3));

  train::MeanIoU named{&Scene::mask, {"road", "car", "sky", "tree"}, 2};
  named.add(nn::Variable<float, 4, HostSpace>{{logits.data(), {2, 2, 2, 4}}, nullptr}, batch.batch());
  std::vector<std::pair<std::string, double>> values;
  train::detail::each_value(named, [&](std::string const& name, double value) { values.emplace_back(name, value); });
  REQUIRE(values.size() == 5);
  CHECK(values[0] == std::pair<std::string, double>("mean_iou", named.value()));
  CHECK(named.value() == doctest::Approx((2.0 / 3 + 3.0 / 4) / 2));  // without the places of class 2
  CHECK(values[1].first == "iou_road");
  CHECK(values[1].second == doctest::Approx(2.0 / 3));
  CHECK(values[2].second == doctest::Approx(3.0 / 4));
  CHECK(std::isnan(values[3].second));
  CHECK(values[4].first == "iou_tree");
  CHECK_THROWS_AS((train::MeanIoU{&Scene::mask, std::vector<std::string>{"road"}}), ConfigError);
}
