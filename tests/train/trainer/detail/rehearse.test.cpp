// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/rehearse.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <lockstep/data/loader/detail/batch_shapes.hpp>

using namespace lockstep;

namespace {

using Shape = data::BatchShape<std::vector<std::int32_t>>;

std::vector<Index> lengths_of(std::vector<Shape> const& shapes) {
  std::vector<Index> lengths;
  for (auto const& shape : shapes) lengths.push_back(shape.padded.lengths[0]);
  return lengths;
}

}  // namespace

TEST_CASE("frequent shapes are ordered by size, and are none if other shapes are frequent, too") {
  std::vector<Shape> const shapes{
      {4, {{7}}, {{8}}, 9}, {4, {{30}}, {{32}}, 5}, {4, {{15}}, {{16}}, 20}, {1, {}, {}, 3}};
  using train::detail::frequent_shapes;
  CHECK(lengths_of(frequent_shapes(shapes, 16)) == std::vector<Index>{32, 16, 8});
  CHECK(lengths_of(frequent_shapes(shapes, 2)) == std::vector<Index>{16, 8});
  CHECK(frequent_shapes(shapes, 1).empty());  // 20 of 37
  CHECK(frequent_shapes(std::vector<Shape>{}, 16).empty());
}

TEST_CASE("the kinds of micro-steps follow from accumulation") {
  auto const kinds = [](Index accumulation, Index micro_steps) {
    std::vector<int> out;
    for (auto const& kind : train::detail::kinds_of_micro_steps({100, micro_steps, 4, accumulation, 1, 0}))
      out.push_back(2 * kind.first + kind.last);
    return out;
  };
  CHECK(kinds(1, 25) == std::vector<int>{3});
  CHECK(kinds(2, 25) == std::vector<int>{2, 1});
  CHECK(kinds(5, 25) == std::vector<int>{2, 0, 1});
  CHECK(kinds(5, 1) == std::vector<int>{3});
}
