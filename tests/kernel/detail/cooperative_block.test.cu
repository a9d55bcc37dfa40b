// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/detail/cooperative_block.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace cooperative_block_on_cuda {
namespace {

constexpr Index rounds = 5;

/// Each thread of one block writes the results of several rounds, which use the same shared memory.
template <class Group, class T>
__global__ void reduce_rounds(T const* x, T* sums, T* maxima) {
  for (auto at = Group::thread_rank(); at < rounds * Group::size; at += Group::size) {
    sums[at] = Group::sum(x[at]);
    maxima[at] = Group::largest(x[at]);
  }
}

/// The order that CooperativeThreads names.
template <class T>
T sum_in_order(T const* x, Index threads) {
  auto const others = threads / 32 - 1;
  std::vector<T> of_lane(x, x + 32);
  for (Index lane = 0; lane < 32; ++lane)
    for (Index i = 0; i < others; ++i) of_lane[static_cast<std::size_t>(lane)] += x[32 + lane * others + i];
  for (std::size_t distance = 1; distance < 32; distance *= 2)
    for (std::size_t lane = 0; lane < 32; lane += 2 * distance) of_lane[lane] += of_lane[lane + distance];
  return of_lane[0];
}

template <unsigned threads, class T>
void check() {
  using Group = kernel::detail::CooperativeThreads<threads>;
  auto x = lockstep_test::values<T>(rounds * Index{threads}, 1);
  auto const nan = static_cast<std::size_t>(3 * threads - 1);  // in the last thread of the third round
  x[nan] = std::numeric_limits<T>::quiet_NaN();
  memory::CudaStream const stream;
  OnDevice<T> const device_x(x), sums(x), maxima(x);
  auto const data = [](OnDevice<T> const& memory) { return memory.view(rounds * Index{threads}).data; };
  kernel::detail::launch_grid("test", stream.view(), 1, threads, reduce_rounds<Group, T>,
                              static_cast<T const*>(data(device_x)), data(sums), data(maxima));
  stream.view().synchronize();
  auto const got_sums = sums.values(), got_maxima = maxima.values();
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto const* const round = &x[i / threads * threads];
    if (i / threads == nan / threads) {
      CHECK(got_sums[i] != got_sums[i]);
      CHECK(got_maxima[i] != got_maxima[i]);
    } else {
      CHECK(got_sums[i] == sum_in_order(round, threads));
      CHECK(got_maxima[i] == *std::max_element(round, round + threads));
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("a block's threads on CUDA all get the sum, in a fixed order, and the maximum", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::detail::CooperativeThreads")) return;
  check<64, T>();
  check<256, T>();
  check<768, T>();
}

}  // namespace cooperative_block_on_cuda
