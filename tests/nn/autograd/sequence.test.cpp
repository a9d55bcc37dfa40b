// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/sequence.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>
#include <lockstep/memory/space.hpp>

using namespace lockstep;

TEST_CASE("a sequence keeps its layout around another activation") {
  auto const layout = nn::SequenceLayout<HostSpace>::padded(3, {}, {nullptr, {2}});
  nn::Sequence<float, HostSpace> const sequence{{{nullptr, {6, 4}}, nullptr}, layout};
  auto const wider = sequence.with({{nullptr, {6, 8}}, nullptr});
  CHECK(sequence.width() == 4);
  CHECK(wider.width() == 8);
  CHECK(wider.layout.rows == 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(sequence.with({{nullptr, {5, 4}}, nullptr})),
                       doctest::Contains("5 rows for a layout with 6 slots"), ShapeError);
}
