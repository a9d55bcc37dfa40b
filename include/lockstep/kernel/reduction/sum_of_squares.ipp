// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/reduction/sum_of_squares.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE double SumOfSquares<HostSpace>::run(Stream stream, Vector<Scalar const> x,
                                                    std::span<TouchedRows const> tables) {
  std::array<double, max_chunks> partial{};
  auto const blocks = blocks_of(x.size()), chunk = chunk_of(blocks);
  stream.pool().for_ranges(blocks, chunk, [&](Index first, Index last) {
    with_best_instructions([&] {
      double sum = 0;
      for (auto b = first; b < last; ++b) sum += of_block(x, tables, b);
      partial[static_cast<std::size_t>(first / chunk)] = sum;
    });
  });
  double sum = 0;
  for (auto p : partial) sum += p;
  return sum;
}

template <class Scalar>
LOCKSTEP_INLINE void SumOfSquares<HostSpace>::run_blocks(Stream stream, Vector<Scalar const> x,
                                                         std::span<TouchedRows const> tables, Index first, Index last,
                                                         double* sums) {
  stream.pool().for_ranges(last - first, smallest_chunk, [&](Index begin, Index end) {
    with_best_instructions([&] {
      for (auto b = first + begin; b < first + end; ++b) sums[b] = of_block(x, tables, b);
    });
  });
}

LOCKSTEP_INLINE double SumOfSquares<HostSpace>::reduce(std::span<double const> sums) noexcept {
  auto const chunk = static_cast<std::size_t>(chunk_of(std::ssize(sums)));
  double all = 0;
  for (std::size_t first = 0; first < sums.size(); first += chunk) {
    double sum = 0;
    for (auto s : sums.subspan(first, std::min(chunk, sums.size() - first))) sum += s;
    all += sum;
  }
  return all;
}

LOCKSTEP_INLINE Index SumOfSquares<HostSpace>::chunk_of(Index blocks) noexcept {
  return std::max(smallest_chunk, (blocks + max_chunks - 1) / max_chunks);
}

template <class Scalar>
LOCKSTEP_INLINE void SumOfSquares<HostSpace>::add(Scalar const* x, Index begin, Index end, Lanes& all) noexcept {
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

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template double SumOfSquares<HostSpace>::run<float>(Stream stream, Vector<float const> x,
                                                    std::span<TouchedRows const> tables);
template double SumOfSquares<HostSpace>::run<double>(Stream stream, Vector<double const> x,
                                                     std::span<TouchedRows const> tables);
template void SumOfSquares<HostSpace>::run_blocks<float>(Stream stream, Vector<float const> x,
                                                         std::span<TouchedRows const> tables, Index first, Index last,
                                                         double* sums);
template void SumOfSquares<HostSpace>::run_blocks<double>(Stream stream, Vector<double const> x,
                                                          std::span<TouchedRows const> tables, Index first, Index last,
                                                          double* sums);
#endif

}}}  // namespace lockstep::kernel
