// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/reduction/sum_of_squares.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/global_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums of squares of an arena's blocks, for a gradient norm of which each rank computes a part.
template <class Space>
class BlockSquares {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
class BlockSquares<HostSpace> {
  using Squares = kernel::SumOfSquares<HostSpace>;

 public:
  using Stream = memory::Stream<HostSpace>;
  using Norm = optim::GlobalNorm;

  explicit BlockSquares(Index size);
  /// Returns the number of elements of a block.
  [[nodiscard]] static constexpr Index block(Index) noexcept { return Squares::block; }

  /// Zeroes the sums.
  void begin(Stream);
  /// Computes the sums of the blocks in [begin, end); `begin` is a multiple of the block.
  void add(Stream stream, TensorView<float const, 1, HostSpace> gradients, std::span<kernel::TouchedRows const> tables,
           Index begin, Index end) {
    Squares::run_blocks<float>(stream, gradients, tables, begin / block(size_), Squares::blocks_of(end), sums_.data());
  }
  /// Returns the sums, one for each block.
  [[nodiscard]] double* data() noexcept { return sums_.data(); }
  [[nodiscard]] Index count() const noexcept { return std::ssize(sums_); }
  /// Returns the norm by the sums, bit-identical to the norm of the whole arena.
  [[nodiscard]] Norm norm(Stream) const noexcept { return {Squares::reduce({sums_.data(), sums_.size()})}; }

 private:
  Index size_;
  std::vector<double> sums_;
};

}}}  // namespace lockstep::parallel::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/detail/block_squares.ipp>
#endif
