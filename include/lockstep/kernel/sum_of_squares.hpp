// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
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
  /// every element is: one pass gives both.
  /// @determinism bitwise, for any number of threads
  template <class T>
  [[nodiscard]] static double run(memory::Stream<HostSpace> stream, TensorView<T const, 1, HostSpace> x) {
    std::array<double, most_chunks> partial{};
    auto const grain = std::max(smallest_grain, (x.size() + most_chunks - 1) / most_chunks);
    stream.pool().for_ranges(x.size(), grain, [&](Index begin, Index end) {
      with_best_instructions(
          [&] { partial[static_cast<std::size_t>(begin / grain)] = of_chunk(x.data + begin, end - begin); });
    });
    double sum = 0;
    for (auto p : partial) sum += p;
    return sum;
  }

 private:
  static constexpr Index most_chunks = 256;
  static constexpr Index smallest_grain = 4096;
  static constexpr Index lanes = 32;  // independent sums: enough to hide the latency of an addition at any vector width

  template <class T>
  static double of_chunk(T const* x, Index count) noexcept {
    std::array<double, lanes> sums{};
    Index i = 0;
    for (; i + lanes <= count; i += lanes)
      for (Index lane = 0; lane < lanes; ++lane) {
        auto const e = static_cast<double>(x[i + lane]);
        sums[static_cast<std::size_t>(lane)] += e * e;
      }
    double sum = 0;
    for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    for (auto s : sums) sum += s;
    return sum;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
