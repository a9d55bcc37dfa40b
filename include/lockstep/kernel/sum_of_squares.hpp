// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

template <class Space>
struct SumOfSquares {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct SumOfSquares<HostSpace> {
  /// sum over i of x[i]^2, in double. Squares of float32 cannot overflow there, so the result is finite exactly when
  /// every element is: one pass gives both. Rows of `tables` that were not touched are not read and count as zero.
  /// @determinism bitwise, for any number of threads, and whether zeros are listed as untouched rows or written out
  template <class T>
  [[nodiscard]] static double run(memory::Stream<HostSpace> stream, TensorView<T const, 1, HostSpace> x,
                                  std::span<TouchedRows const> tables = {}) {
    std::array<double, most_chunks> partial{};
    auto const grain = std::max(smallest_grain, (x.size() + most_chunks - 1) / most_chunks);
    stream.pool().for_ranges(x.size(), grain, [&](Index begin, Index end) {
      with_best_instructions([&] {
        Lanes sums{};
        for_written(tables, begin, end,
                    [&](Index from, Index to) { add(x.data + begin, from - begin, to - begin, sums); });
        double sum = 0;
        for (auto s : sums) sum += s;
        partial[static_cast<std::size_t>(begin / grain)] = sum;
      });
    });
    double sum = 0;
    for (auto p : partial) sum += p;
    return sum;
  }

 private:
  static constexpr Index most_chunks = 256;
  static constexpr Index smallest_grain = 4096;
  static constexpr Index lanes = 32;  // independent sums: enough to hide the latency of an addition at any vector width
  using Lanes = std::array<double, static_cast<std::size_t>(lanes)>;

  /// Element i belongs to lane i % lanes, so that what lies between two parts does not change the bits.
  template <class T>
  static void add(T const* x, Index begin, Index end, Lanes& all) noexcept {
    auto sums = all;
    auto const add_one = [&](Index i, Index lane) {
      auto const e = static_cast<double>(x[i]);
      sums[static_cast<std::size_t>(lane)] += e * e;
    };
    for (; begin < end && begin % lanes != 0; ++begin) add_one(begin, begin % lanes);
    for (; begin + lanes <= end; begin += lanes)
      for (Index lane = 0; lane < lanes; ++lane) add_one(begin + lane, lane);
    for (; begin < end; ++begin) add_one(begin, begin % lanes);
    all = sums;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
