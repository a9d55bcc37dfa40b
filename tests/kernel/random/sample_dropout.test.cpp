// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/sample_dropout.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using kernel::DropoutMask;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::SampleDropout<HostSpace>;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

DropoutMask const half = DropoutMask::of(42, 0.5);

template <class T>
void check(Layout const& layout, Index width) {
  auto const slots = layout.slots;
  auto x = values<T>(slots * width, 1);
  auto const before = values<T>(slots * width, 2);
  std::vector<T> fresh, sum = before;
  for (Index i = 0; i < slots * width; ++i) {
    auto const at = static_cast<std::size_t>(i);
    auto const position = layout.positions.data[layout.row_of(i / width)];
    bool const kept = half.keeps(static_cast<std::uint64_t>(position), 0);
    fresh.push_back(kept ? x[at] * 2 : T{0});
    if (kept) sum[at] += x[at] * 2;
    if (!kept) x[at] = std::numeric_limits<T>::quiet_NaN();  // not read
  }
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    memory::Stream<HostSpace> const stream(pool);
    auto y = x, added = before;
    Kernel::apply<T>(stream, half, layout, view(y, slots, width), view(y, slots, width), Write::overwrite);
    Kernel::apply<T>(stream, half, layout, view(x, slots, width), view(added, slots, width), Write::add);
    CHECK(y == fresh);
    CHECK(added == sum);
  }
}

}  // namespace

TEST_CASE_TEMPLATE(
    "all of a sample is x * scale or 0 by its first mask element, including padding, in place "
    "and added",
    T, float, double) {
  std::vector<Index> const positions{3, 4, Index{1} << 40, 0, 9, 11, 12};
  std::vector<std::int32_t> const lengths{3, 0, 5, 1, 2, 5, 4};
  std::vector<Index> const offsets{0, 3, 3, 8, 9, 9, 9, 300};
  for (Index width : {1, 31, 32, 33, 3000}) {
    check<T>(Layout::padded(5, view(lengths, 7), view(positions, 7)), width);
    check<T>(Layout::padded(50, {}, view(positions, 7)), width);
    check<T>(Layout::ragged(300, 291, view(offsets, 8), view(positions, 7)), width);
    check<T>(Layout::vectors(7, view(positions, 7)), width);
    check<T>(Layout::vectors(0, view(positions, 0)), width);
  }
}
