// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/standard_normal.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::view;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

template <class T>
std::vector<T> numbers(Layout const& layout, Index width, int threads, std::uint64_t key = 42) {
  ThreadPool pool(threads);
  std::vector<T> to(static_cast<std::size_t>(layout.slots * width), T{-7});
  kernel::StandardNormal<HostSpace>::fill<T>(memory::Stream<HostSpace>(pool), kernel::DropoutMask{key}, layout,
                                             view(to, layout.slots, width));
  return to;
}

}  // namespace

TEST_CASE_TEMPLATE("element e of a sample is the quantile at word e % 4 of its block e / 4; padding is 0", T, float,
                   double) {
  std::vector<Index> const positions{3, Index{1} << 40, 0};
  for (Index length : {1, 5, 33})
    for (Index width : {1, 3, 4, 17, 300}) {
      std::vector<std::int32_t> const lengths{static_cast<std::int32_t>(length), 0, 1};
      auto const got = numbers<T>(Layout::padded(length, view(lengths, 3), view(positions, 3)), width, 2);
      Index wrong = 0;
      for (Index r = 0; r < 3; ++r)
        for (Index e = 0; e < length * width; ++e) {
          auto const row = static_cast<std::size_t>(r);
          auto const block = Philox(42)(static_cast<std::uint64_t>(positions[row]), static_cast<std::uint64_t>(e / 4));
          auto const word = block[static_cast<std::size_t>(e % 4)];
          T const expected =
              static_cast<T>(kernel::detail::normal_quantile(word, std::sqrt(kernel::detail::squared_tail(word))));
          wrong +=
              got[static_cast<std::size_t>(r * length * width + e)] != (e < lengths[row] * width ? expected : T{0});
        }
      CAPTURE(length);
      CAPTURE(width);
      CHECK(wrong == 0);
    }
}

TEST_CASE("bits do not depend on threads, and every key has its own numbers") {
  std::vector<Index> const positions{5, 1, 9, 2};
  auto const layout = Layout::padded(100, {}, view(positions, 4));
  auto const one = numbers<float>(layout, 33, 1);
  for (int threads : {2, 4}) CHECK(numbers<float>(layout, 33, threads) == one);
  CHECK(numbers<float>(layout, 33, 1, 43) != one);
}

TEST_CASE("mean 0, deviation 1, no skew, and the tails of the normal distribution") {
  std::vector<Index> places(100);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<Index>(i);
  auto const all = numbers<double>(Layout::padded(100, {}, view(places, 100)), 64, 2);
  double const count = static_cast<double>(all.size());  // 640,000
  double sums[4] = {}, beyond = 0, products = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double power = 1;
    for (double& sum : sums) sum += power *= all[i];
    beyond += std::abs(all[i]) > 3;
    if (i > 0) products += all[i] * all[i - 1];
  }
  // Standard errors of the moments: sqrt(1, 2, 15, 96) over 800, and sqrt(0.0027 * 640,000) = 42 of the count; 5 each.
  CHECK(std::abs(sums[0] / count) < 5 / 800.0);
  CHECK(std::abs(sums[1] / count - 1) < 5 * 1.42 / 800);
  CHECK(std::abs(sums[2] / count) < 5 * 3.88 / 800);
  CHECK(std::abs(sums[3] / count - 3) < 5 * 9.8 / 800);
  CHECK(std::abs(beyond - 0.0026998 * count) < 5 * 42);
  CHECK(std::abs(products / count) < 5 / 800.0);
}
