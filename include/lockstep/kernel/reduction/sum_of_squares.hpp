// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Sum of the squares of an array, such as all gradients.
template <class Space>
struct SumOfSquares : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct SumOfSquares<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Elements whose squares are summed separately first. A caller with whole blocks of an arena can thus compute its
  /// part of the sum.
  static constexpr Index block = 1024;
  /// Returns the number of blocks of an array.
  [[nodiscard]] static constexpr Index blocks_of(Index size) noexcept { return (size + block - 1) / block; }

  /// Returns the sum over i of x[i]^2, in double. Squares of float32 cannot overflow there, so the result is finite
  /// exactly if each element is: one pass gives both. Rows of `tables` that were not touched are not read and count as
  /// zero.
  /// @determinism bitwise, for any number of threads, and whether zeros are listed as untouched rows or written out
  template <class Scalar>
  [[nodiscard]] static double run(Stream stream, Vector<Scalar const> x, std::span<TouchedRows const> tables = {});

  /// Computes the sums of the blocks [first, last). Does not read other elements of x.
  /// @shape sums [blocks_of(x.size())], of which only those are written   @determinism bitwise, for any number of
  /// threads
  template <class Scalar>
  static void run_blocks(Stream stream, Vector<Scalar const> x, std::span<TouchedRows const> tables, Index first,
                         Index last, double* sums);
  /// Returns the result of `run`, bit-identical, for an x whose blocks have these sums.
  [[nodiscard]] static double reduce(std::span<double const> sums) noexcept;
  /// Deprecated: use reduce().
  [[deprecated("kernel::SumOfSquares::reduce"), nodiscard]] static double total(std::span<double const> sums) noexcept {
    return reduce(sums);
  }

 private:
  static constexpr Index max_chunks = 256;  // of blocks, each summed by one thread
  static constexpr Index smallest_chunk = 4;
  static constexpr Index lanes = 32;  // independent sums: enough to hide an addition's latency for any vector width
  using Lanes = std::array<double, static_cast<std::size_t>(lanes)>;

  [[nodiscard]] static Index chunk_of(Index blocks) noexcept;
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static double of_block(Vector<Scalar const> x, std::span<TouchedRows const> tables,
                                                           Index number) noexcept {
    auto const begin = number * block, end = std::min(x.size(), begin + block);
    Lanes sums;
    bool any = false;  // most blocks of a large table have no row that was touched
    for_written(tables, begin, end, [&](Index from, Index to) {
      if (!any) {
        sums = {};
        any = true;
      }
      add(x.data + begin, from - begin, to - begin, sums);
    });
    if (!any) return 0;
    for (auto half = sums.size() / 2; half > 0; half /= 2)
      for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    return sums[0];
  }

  /// Adds the squares of a part. Element i belongs to lane i % lanes, so that gaps between parts do not change the
  /// bits.
  template <class Scalar>
  static void add(Scalar const* x, Index begin, Index end, Lanes& all) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/reduction/sum_of_squares.ipp>
#endif
