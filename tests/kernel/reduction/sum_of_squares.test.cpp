// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/sum_of_squares.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

using lockstep::HostSpace;
using lockstep::Index;

TEST_CASE("integers are summed exactly, at any size and with any number of threads") {
  for (Index count : {0, 1, 31, 32, 33, 4095, 4096, 4097, 1'100'000}) {
    std::vector<float> x(static_cast<std::size_t>(count));
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i % 61);
      expected += static_cast<double>(x[i]) * x[i];  // below 2^53: every partial sum is exact
    }
    for (int threads : {1, 2, 3}) {
      lockstep::ThreadPool pool(threads);
      CHECK(lockstep::kernel::SumOfSquares<HostSpace>::run<float>(lockstep::memory::Stream<HostSpace>(pool),
                                                                  {x.data(), {count}}) == expected);
    }
  }
}

TEST_CASE("rows listed as untouched and rows full of zeros give equal bits") {
  for (Index width : {1, 5, 31, 32, 33, 128}) {
    constexpr Index rows = 4000, offset = 48;
    std::vector<float> x(static_cast<std::size_t>(offset + rows * width + 40));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.F / static_cast<float>(i % 1013 + 1);
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(lockstep::kernel::TouchedRows::words_for(rows)));
    lockstep::kernel::TouchedRows const table{offset, rows, width, bits.data()};
    auto zeros = x, nans = x;
    for (Index row = 0; row < rows; ++row) {
      if (row % 7 == 0 || (row > 500 && row < 900)) {
        table.insert(row);
      } else {
        auto const at = offset + row * width;
        std::fill_n(zeros.begin() + at, width, 0.F);
        std::fill_n(nans.begin() + at, width, std::numeric_limits<float>::quiet_NaN());
      }
    }
    lockstep::ThreadPool pool(2);
    lockstep::memory::Stream<HostSpace> const stream(pool);
    auto const of = [&](std::vector<float> const& all, std::span<lockstep::kernel::TouchedRows const> tables) {
      return lockstep::kernel::SumOfSquares<HostSpace>::run<float>(stream, {all.data(), {std::ssize(all)}}, tables);
    };
    CHECK(of(nans, std::span(&table, 1)) == of(zeros, {}));
    CHECK(of(x, {}) > of(zeros, {}));
  }
}

TEST_CASE("separately summed blocks, divided in any way, give the bits of the whole") {
  using Squares = lockstep::kernel::SumOfSquares<HostSpace>;
  for (Index count : {0, 1, 1023, 1024, 1025, 5000, 1'101'000}) {  // the last in 215 chunks of 5 blocks and one of 1
    CAPTURE(count);
    std::vector<float> x(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.F / static_cast<float>(i % 1013 + 1);
    constexpr Index rows = 100, width = 7, offset = 16;
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(lockstep::kernel::TouchedRows::words_for(rows)));
    lockstep::kernel::TouchedRows const table{offset, rows, width, bits.data()};
    for (Index row = 0; row < rows; row += 3) table.insert(row);
    std::span const tables(&table, count >= table.end() ? 1 : 0);
    lockstep::TensorView<float const, 1, HostSpace> const all{x.data(), {count}};
    lockstep::ThreadPool pool(2);
    lockstep::memory::Stream<HostSpace> const stream(pool);
    auto const whole = Squares::run<float>(stream, all, tables);
    auto const blocks = Squares::blocks_of(count);
    for (Index parts : {1, 2, 3}) {
      std::vector<double> sums(static_cast<std::size_t>(blocks), -1.0);
      for (Index part = parts; part-- > 0;)
        Squares::run_blocks<float>(stream, all, tables, blocks * part / parts, blocks * (part + 1) / parts,
                                   sums.data());
      CHECK(Squares::reduce(sums) == whole);
    }
  }
}
