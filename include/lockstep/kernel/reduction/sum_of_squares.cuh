// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/kernel/reduction/sum_of_squares.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// A stream's partial sums, and the pinned memory in which the host receives their sum.
class SquaresMemory {
 public:
  static constexpr Index max_chunks = 1024;
  memory::Buffer<double, CudaSpace> partial{max_chunks + 1, memory::CudaResource{}};
  memory::Block total = memory::PinnedResource{}.allocate(sizeof(double));
};

}  // namespace detail

/// CUDA version of the primary template.
template <>
struct SumOfSquares<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, which sums in another order. Waits for the device.
  /// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: only the size determines the
  /// chunks, which are summed in order
  /// @throws ConfigError for tables of touched rows: on a device all gradients are written
  template <class Scalar>
  [[nodiscard]] static double run(Stream stream, Vector<Scalar const> x, std::span<TouchedRows const> tables = {});

  /// Computes the sum and keeps it in device memory.
  template <class Scalar>
  static void run_on_device(Stream stream, Vector<Scalar const> x, double* to);

  static constexpr Index max_chunks = detail::SquaresMemory::max_chunks;  ///< most chunks of an array
  /// Returns the number of elements of x whose squares are summed separately first. A caller with whole chunks of an
  /// arena can thus compute its part of the sum.
  template <class Scalar>
  [[nodiscard]] static Index chunk_of(Index size) noexcept;
  /// Computes the sums of the chunks of x in [begin, end); `begin` is a multiple of the chunk. Does not read other
  /// elements.
  /// @shape sums [number of chunks of x] in device memory, of which only those are written
  template <class Scalar>
  static void run_chunks(Stream stream, Vector<Scalar const> x, Index begin, Index end, double* sums);
  /// Computes the result of `run_on_device`, bit-identical, for an x whose chunks have these sums.
  static void reduce(Stream stream, double const* sums, Index chunks, double* to);
  /// Deprecated: use reduce().
  [[deprecated("kernel::SumOfSquares::reduce")]] static void total(Stream stream, double const* sums, Index chunks,
                                                                   double* to) {
    reduce(stream, sums, chunks, to);
  }

 private:
  static constexpr Index smallest_chunk = 4096;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/reduction/sum_of_squares.icuh>
#endif
