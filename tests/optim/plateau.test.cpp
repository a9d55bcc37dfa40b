// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/plateau.hpp>

#include <doctest/doctest.h>

#include <utility>

using lockstep::optim::PlateauFactor;

TEST_CASE("the rate falls after a number of evaluations without a best one, and the count restarts") {
  PlateauFactor factor({.patience = 2, .factor = 0.5});
  CHECK(factor.value() == 1);
  for (auto const& [best, expected] : {std::pair{true, 1.0},
                                       {false, 1.0},
                                       {true, 1.0},
                                       {false, 1.0},
                                       {false, 0.5},
                                       {false, 0.5},
                                       {false, 0.25},
                                       {true, 0.25},
                                       {false, 0.25},
                                       {false, 0.125}}) {
    factor.record(best);
    CHECK(factor.value() == expected);
  }
}

TEST_CASE("it falls no further than its minimum, and not at all without patience") {
  PlateauFactor bounded({.patience = 1, .factor = 0.1, .min_factor = 0.05}), never({.patience = 0});
  for (int i = 0; i < 3; ++i) bounded.record(false), never.record(false);
  CHECK(bounded.value() == 0.05);
  CHECK(never.value() == 1);
}
