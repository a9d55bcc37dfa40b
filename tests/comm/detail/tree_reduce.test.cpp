// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/detail/tree_reduce.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "comm/conformance.hpp"

using namespace lockstep_test;
using lockstep::comm::Operation;
using lockstep::comm::detail::reduce_range;

TEST_CASE_TEMPLATE("ranges are reduced in the tree, in place and apart", T, float, double) {
  for (int const ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33})
    for (Index const count : {0, 1, 31, 32, 33, 511, 512, 513, 1100}) {
      std::vector<std::vector<T>> data;
      std::vector<void const*> in;
      std::vector<void*> out;
      for (int r = 0; r < ranks; ++r) {
        data.emplace_back(static_cast<std::size_t>(count + 2), T{-7});
        for (Index i = 0; i < count; ++i) data.back()[static_cast<std::size_t>(i + 1)] = input<T>(r, i);
      }
      for (auto& rank : data) in.push_back(rank.data() + 1), out.push_back(rank.data() + 1);
      std::vector<T> apart(static_cast<std::size_t>(count));
      void* const target = apart.data();
      reduce_range(Operation::sum, lockstep::element_type_of<T>, in.data(), ranks, &target, 1, 0, count);
      reduce_range(Operation::sum, lockstep::element_type_of<T>, in.data(), ranks, out.data(), ranks, 0, count);
      for (Index i = 0; i < count; ++i) {
        auto const expected = tree(0, ranks, [&](int r) { return input<T>(r, i); });
        auto const at = static_cast<std::size_t>(i);
        REQUIRE(same_bits(apart[at], expected));
        for (auto const& rank : data) REQUIRE(same_bits(rank[at + 1], expected));
      }
      for (auto const& rank : data) REQUIRE((rank.front() == T{-7} && rank.back() == T{-7}));
    }
}

TEST_CASE("only the range is written") {
  std::vector<float> a{1, 2, 3, 4}, b{10, 20, 30, 40};
  void const* const in[] = {a.data(), b.data()};
  void* const out[] = {a.data(), b.data()};
  reduce_range(Operation::max, lockstep::ElementType::float32, in, 2, out, 2, 1, 3);
  CHECK(a == std::vector<float>{1, 20, 30, 4});
  CHECK(b == std::vector<float>{10, 20, 30, 40});
}

TEST_CASE("max spreads nan from either side") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> a{nan, 1, nan}, b{1, nan, nan};
  void const* const in[] = {a.data(), b.data()};
  void* const out[] = {a.data()};
  reduce_range(Operation::max, lockstep::ElementType::float32, in, 2, out, 1, 0, 3);
  for (float const x : a) CHECK(std::isnan(x));
}
