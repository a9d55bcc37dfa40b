// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/dropout.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "kernel/view.hpp"

using namespace lockstep;
using kernel::DropoutMask;
using lockstep_test::view;
using Kernel = kernel::Dropout<HostSpace>;

namespace {

template <class T>
struct Batch {
  Index rows, length, width;
  std::vector<Index> positions;
  std::vector<std::int32_t> lengths;
  std::vector<T> x;

  Batch(Index row_count, Index slots, Index channels) : rows(row_count), length(slots), width(channels) {
    for (Index r = 0; r < rows; ++r) {
      positions.push_back(1000 + 7 * r + (r % 2 ? Index{1} << 40 : 0));
      lengths.push_back(static_cast<std::int32_t>(r % 3 == 0 ? length : r % 3 == 1 ? length / 2 : 0));
    }
    for (Index i = 0; i < rows * length * width; ++i) x.push_back(static_cast<T>(i % 13 + 1));
  }
  [[nodiscard]] kernel::SequenceLayout<HostSpace> layout() const {
    return kernel::SequenceLayout<HostSpace>::padded(length, view(lengths, lengths.size()), view(positions, rows));
  }
  [[nodiscard]] std::vector<T> apply(DropoutMask mask, int threads, std::vector<T> y = {},
                                     Write write = Write::overwrite) const {
    ThreadPool pool(threads);
    if (y.empty()) y.assign(x.size(), T{-7});
    Kernel::apply<T>(memory::Stream<HostSpace>(pool), mask, layout(), view(x, rows * length, width),
                     view(y, rows * length, width), write);
    return y;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("every token element is x * scale or 0 as the mask says; padding is 0", T, float, double) {
  auto const mask = DropoutMask::of(42, 0.3);
  for (Index rows : {0, 1, 3, 4})
    for (Index length : {1, 2, 31, 32, 33})
      for (Index width : {1, 3, 8, 16, 17, 64, 300}) {
        Batch<T> const batch(rows, length, width);
        auto const y = batch.apply(mask, 2);
        bool all = true;
        for (Index r = 0; r < rows; ++r)
          for (Index e = 0; e < length * width; ++e) {
            auto const i = static_cast<std::size_t>(r * length * width + e);
            bool const token = e < batch.lengths[static_cast<std::size_t>(r)] * width;
            bool const kept = mask.keeps(static_cast<std::uint64_t>(batch.positions[static_cast<std::size_t>(r)]),
                                         static_cast<std::uint64_t>(e));
            all = all && y[i] == (token && kept ? batch.x[i] * static_cast<T>(mask.scale()) : T{0});
          }
        CAPTURE(rows);
        CAPTURE(length);
        CAPTURE(width);
        CHECK(all);
      }
}

TEST_CASE("without lengths every slot is a token") {
  auto const mask = DropoutMask::of(1, 0.5);
  Batch<float> full(4, 5, 9), none = full;
  full.lengths.assign(4, 5);
  none.lengths.clear();
  CHECK(full.apply(mask, 1) == none.apply(mask, 1));
}

TEST_CASE("adding writes change tokens and leave padding unchanged") {
  auto const mask = DropoutMask::of(1, 0.5);
  Batch<double> const batch(3, 10, 6);
  auto const fresh = batch.apply(mask, 1);
  auto const added = batch.apply(mask, 1, std::vector<double>(batch.x.size(), 100.0), Write::add);
  for (std::size_t i = 0; i < fresh.size(); ++i) CHECK(added[i] == fresh[i] + 100);
}

TEST_CASE("in-place calls give equal results") {
  auto const mask = DropoutMask::of(8, 0.4);
  Batch<float> batch(4, 33, 10);
  auto const expected = batch.apply(mask, 1);
  ThreadPool pool(2);
  Kernel::apply<float>(memory::Stream<HostSpace>(pool), mask, batch.layout(), view(batch.x, 132, 10),
                       view(batch.x, 132, 10), Write::overwrite);
  CHECK(batch.x == expected);
}

TEST_CASE("bits are equal for any number of threads, in any row, with any padding") {
  auto const mask = DropoutMask::of(3, 0.1);
  Batch<float> const batch(5, 47, 24);
  auto const one = batch.apply(mask, 1);
  for (int threads : {2, 3, 4}) CHECK(batch.apply(mask, threads) == one);

  Batch<float> wider(1, 60, 24);  // the batch's row 3, alone and with more padding
  wider.positions = {batch.positions[3]};
  wider.lengths = {batch.lengths[3]};
  std::memcpy(wider.x.data(), batch.x.data() + 3 * 47 * 24, sizeof(float) * 47 * 24);
  auto const alone = wider.apply(mask, 1);
  auto const tokens = static_cast<std::size_t>(batch.lengths[3]) * 24;
  CHECK(tokens > 0);
  CHECK(std::memcmp(alone.data(), one.data() + 3 * 47 * 24, tokens * sizeof(float)) == 0);
}
