// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/classes/class_balance.hpp>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("weights are samples / (classes * count), as in scikit-learn's class_weight='balanced'") {
  std::vector<std::int32_t> const labels{0, 0, 2, 0, 1, 0, 0, 1, 0, 0};  // 7, 2 and 1
  data::ClassBalance const balance{labels, {"rest", "walk", "jump"}};
  CHECK(balance.samples() == 10);
  CHECK(balance.counts() == std::vector<Index>{7, 2, 1});
  auto const weights = balance.weights();
  REQUIRE(weights.size() == 3);
  CHECK(weights[0] == doctest::Approx(10.0 / (3 * 7)));
  CHECK(weights[1] == doctest::Approx(10.0 / (3 * 2)));
  CHECK(weights[2] == doctest::Approx(10.0 / (3 * 1)));
  CHECK(7 * weights[0] + 2 * weights[1] + weights[2] == doctest::Approx(10));
}

TEST_CASE("a class without samples has weight 0, and without samples there are no shares") {
  std::vector<std::int32_t> const labels{1, 1};
  data::ClassBalance const balance{labels, {"none", "all"}};
  CHECK(balance.weights() == std::vector<float>{0.0f, 0.5f});
  data::ClassBalance const empty{{}, {"a", "b"}};
  CHECK(empty.weights() == std::vector<float>{0, 0});
  CHECK(empty.table().find("0.00 %") != std::string::npos);
}

TEST_CASE("the table has class, name, samples, share and weight") {
  std::vector<std::int32_t> const labels{0, 0, 0, 1};
  CHECK(data::ClassBalance{labels, {"rest", "rearing"}}.table() ==
        "class  name      samples    share     weight\n"
        "    0  rest            3  75.00 %     0.6667\n"
        "    1  rearing         1  25.00 %     2.0000\n");
}

TEST_CASE("a label outside the classes is refused with the sample's number") {
  std::vector<std::int32_t> const labels{0, 1, 2}, negative{-1};
  CHECK_THROWS_WITH_AS((data::ClassBalance{labels, {"a", "b"}}),
                       "ClassBalance: sample 2 has the label 2; the classes are 0 to 1", DataError);
  CHECK_THROWS_AS((data::ClassBalance{negative, {"a", "b"}}), DataError);
}
