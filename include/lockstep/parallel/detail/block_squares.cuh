// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include <lockstep/kernel/reduction/sum_of_squares.cuh>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/parallel/detail/block_squares.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums in device memory. The block depends on the arena's size: it is the chunk of the kernel that sums a whole arena.
template <>
class BlockSquares<CudaSpace> {
  using Squares = kernel::SumOfSquares<CudaSpace>;

 public:
  using Stream = memory::Stream<CudaSpace>;
  /// Address of the sum of squares in device memory.
  using Norm = double const*;

  explicit BlockSquares(Index size) : count_((size + block(size) - 1) / block(size)) {}
  [[nodiscard]] static Index block(Index size) noexcept { return Squares::chunk_of<float>(size); }

  void begin(Stream stream) {
    if (sums_.size() == 0) sums_ = memory::Buffer<double, CudaSpace>(count_ + 1, memory::CudaResource{});
    memory::check_cuda(
        cudaMemsetAsync(sums_.data(), 0, static_cast<std::size_t>(count_) * sizeof(double), stream.get()),
        "cudaMemsetAsync");
  }
  void add(Stream stream, TensorView<float const, 1, CudaSpace> gradients, std::span<kernel::TouchedRows const>,
           Index begin, Index end) {
    Squares::run_chunks<float>(stream, gradients, begin, end, sums_.data());
  }
  [[nodiscard]] double* data() noexcept { return sums_.data(); }
  [[nodiscard]] Index count() const noexcept { return count_; }
  [[nodiscard]] Norm norm(Stream stream) {
    auto* const to = sums_.data() + count_;
    Squares::reduce(stream, sums_.data(), count_, to);
    return to;
  }

 private:
  Index count_;
  memory::Buffer<double, CudaSpace> sums_;  // and their sum
};

}}}  // namespace lockstep::parallel::detail
