// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/detail/tree_reduce.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "comm/conformance.hpp"

using namespace lockstep_test;
using lockstep::comm::Reduction;
using lockstep::comm::detail::reduce_range;

TEST_CASE_TEMPLATE("ranges are reduced in the tree, in place and out of place", T, float, double) {
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
      std::vector<T> separate(static_cast<std::size_t>(count));
      void* const target = separate.data();
      reduce_range(Reduction::sum, lockstep::element_type_of<T>, in.data(), ranks, &target, 1, 0, count);
      reduce_range(Reduction::sum, lockstep::element_type_of<T>, in.data(), ranks, out.data(), ranks, 0, count);
      for (Index i = 0; i < count; ++i) {
        auto const expected = tree(0, ranks, [&](int r) { return input<T>(r, i); });
        auto const at = static_cast<std::size_t>(i);
        REQUIRE(same_bits(separate[at], expected));
        for (auto const& rank : data) REQUIRE(same_bits(rank[at + 1], expected));
      }
      for (auto const& rank : data) REQUIRE((rank.front() == T{-7} && rank.back() == T{-7}));
    }
}

TEST_CASE("only the range is written") {
  std::vector<float> a{1, 2, 3, 4}, b{10, 20, 30, 40};
  void const* const in[] = {a.data(), b.data()};
  void* const out[] = {a.data(), b.data()};
  reduce_range(Reduction::max, lockstep::ElementType::float32, in, 2, out, 2, 1, 3);
  CHECK(a == std::vector<float>{1, 20, 30, 4});
  CHECK(b == std::vector<float>{10, 20, 30, 40});
}

TEST_CASE("outputs need not be the inputs") {
  std::vector<float> const a{1, 2, 3}, b{10, 20, 30};
  std::vector<float> x(3), y(3);
  void const* const in[] = {a.data(), b.data()};
  void* const out[] = {x.data(), y.data()};
  reduce_range(Reduction::sum, lockstep::ElementType::float32, in, 2, out, 2, 0, 3);
  CHECK(x == std::vector<float>{11, 22, 33});
  CHECK(y == x);
  CHECK(b == std::vector<float>{10, 20, 30});
}

TEST_CASE("a sum can be in any one rank's memory, and only its range is written") {
  for (int const ranks : {1, 2, 3, 4, 5})
    for (int own = 0; own < ranks; ++own) {
      CAPTURE(ranks);
      CAPTURE(own);
      std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks));
      std::vector<void const*> in;
      for (int r = 0; r < ranks; ++r) {
        for (Index i = 0; i < 600; ++i) data[static_cast<std::size_t>(r)].push_back(input<float>(r, i));
        in.push_back(data[static_cast<std::size_t>(r)].data());
      }
      auto expected = data;
      for (Index i = 3; i < 590; ++i)
        expected[static_cast<std::size_t>(own)][static_cast<std::size_t>(i)] =
            tree(0, ranks, [&](int r) { return input<float>(r, i); });
      void* const out = data[static_cast<std::size_t>(own)].data();
      reduce_range(Reduction::sum, lockstep::ElementType::float32, in.data(), ranks, &out, 1, 3, 590);
      CHECK(data == expected);
    }
}

TEST_CASE("max propagates NaN from either side") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> a{nan, 1, nan}, b{1, nan, nan};
  void const* const in[] = {a.data(), b.data()};
  void* const out[] = {a.data()};
  reduce_range(Reduction::max, lockstep::ElementType::float32, in, 2, out, 1, 0, 3);
  for (float const x : a) CHECK(std::isnan(x));
}

TEST_CASE("other operations and narrow types use the same tree") {
  Index const count = 513;
  auto const check = [&]<class T>(T, Reduction reduction, auto const& combine) {
    for (int const ranks : {1, 2, 3, 5, 6, 7, 9, 33}) {
      std::vector<std::vector<T>> data(static_cast<std::size_t>(ranks));
      std::vector<void const*> in;
      std::vector<void*> out;
      for (std::size_t r = 0; r < data.size(); ++r) {
        for (Index i = 0; i < count; ++i)
          data[r].push_back(static_cast<T>(static_cast<lockstep::Accumulate<T>>((i * 7 + static_cast<Index>(r)) % 5)));
        in.push_back(data[r].data()), out.push_back(data[r].data());
      }
      auto const before = data;
      reduce_range(reduction, lockstep::element_type_of<T>, in.data(), ranks, out.data(), ranks, 0, count);
      for (std::size_t i = 0; i < before[0].size(); ++i) {
        auto result = static_cast<double>(before[0][i]);
        for (std::size_t r = 1; r < data.size(); ++r) result = combine(result, static_cast<double>(before[r][i]));
        if (reduction == Reduction::average) result /= ranks;
        if (reduction == Reduction::logical_or || reduction == Reduction::logical_and) result = result != 0;
        for (auto const& rank : data)  // sums of small integers are exact, so only the last step rounds
          REQUIRE(same_bits(rank[i], static_cast<T>(static_cast<lockstep::Accumulate<T>>(result))));
      }
    }
  };
  auto const sum = [](double a, double b) { return a + b; };
  auto const larger = [](double a, double b) { return std::max(a, b); };
  check(std::int32_t{}, Reduction::sum, sum);
  check(std::int64_t{}, Reduction::max, larger);
  check(std::uint8_t{}, Reduction::logical_or, larger);
  check(std::uint8_t{}, Reduction::logical_and, [](double a, double b) { return a * b; });
  check(lockstep::bfloat16{}, Reduction::average, sum);
  check(lockstep::float16{}, Reduction::max, larger);
}

TEST_CASE("integers wrap around, and an output may be one of the inputs") {
  std::vector<std::uint8_t> a{200, 1, 255}, b{100, 2, 255};
  void const* const in[] = {a.data(), b.data()};
  void* const out[] = {b.data()};
  reduce_range(Reduction::sum, lockstep::ElementType::uint8, in, 2, out, 1, 0, 3);
  CHECK(b == std::vector<std::uint8_t>{44, 3, 254});
  CHECK(a == std::vector<std::uint8_t>{200, 1, 255});
}
