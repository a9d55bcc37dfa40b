// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sample_extent.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

struct Inner {
  std::string name;
  float x = 0;
};
struct Sample {
  std::vector<int> tokens;
  int label = 0;
  Inner inner;
  std::array<int, 3> fixed{};
  std::vector<std::array<float, 2>> points;
  std::optional<int> maybe;
};
struct Numbers {
  int a = 0;
  double b = 0;
};

static_assert(data::SampleExtent<Sample>::count == 3);
static_assert(data::SampleExtent<Numbers>::count == 0);
static_assert(data::SampleExtent<std::vector<int>>::count == 1);

}  // namespace

TEST_CASE("an extent lists the lengths in the order of declaration, with nested ones in place") {
  Sample sample;
  CHECK(data::extent_of(sample).lengths == std::array<Index, 3>{0, 0, 0});
  sample.tokens.resize(31);
  sample.inner.name = "ab";
  sample.points.resize(5);
  CHECK(data::extent_of(sample).lengths == std::array<Index, 3>{31, 2, 5});
  CHECK(data::extent_of(sample) != data::extent_of(Sample{}));
}

TEST_CASE("a sample without variable lengths has an empty extent") {
  CHECK(data::extent_of(Numbers{}) == data::extent_of(Numbers{1, 2}));
}
