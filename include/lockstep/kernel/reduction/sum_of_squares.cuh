// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/sum_all.cuh>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/reduction/sum_of_squares.hpp>
#include <lockstep/memory/buffer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// One block sums one chunk.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void sum_squares(Scalar const* x, Index count, Index chunk, double* partial) {
  using Access = WidestAccess<Scalar>;
  double sum = 0;
  auto const end = min(count, (BlockTeam::first() + 1) * chunk);
  for (auto first = BlockTeam::first() * chunk + BlockTeam::member() * Access::size; first < end;
       first += BlockTeam::size * Access::size) {
    typename Access::template Values<double> values;
    Access(first, end).load_as(x, values);
    for (auto const value : values) sum += value * value;
  }
  sum = BlockTeam::sum(sum);
  if (BlockTeam::member() == 0) partial[BlockTeam::first()] = sum;
}

}  // namespace LOCKSTEP_CUDA_ABI

/// A stream's partial sums, and the pinned memory in which the host receives their sum.
class SquaresMemory {
 public:
  static constexpr Index max_chunks = 1024;
  memory::Buffer<double, CudaSpace> partial{max_chunks + 1, memory::CudaResource{}};
  memory::Block total = memory::PinnedResource{}.allocate(sizeof(double));
};

}  // namespace detail

template <>
struct SumOfSquares<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, which sums in another order. Waits for the device.
  /// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: only the size determines the
  /// chunks, which are summed in order
  /// @throws ConfigError for tables of touched rows: on a device all gradients are written
  template <class Scalar>
  [[nodiscard]] static double run(Stream stream, Vector<Scalar const> x, std::span<TouchedRows const> tables = {}) {
    expect<ConfigError>(tables.empty(), [] {
      return "SumOfSquares: row gradients are supported on the host only; use dense gradients for tables on a device";
    });
    auto& memory = stream.persistent<detail::SquaresMemory>();
    auto* const sum = memory.partial.data() + detail::SquaresMemory::max_chunks;
    run_on_device<Scalar>(stream, x, sum);
    auto* const to = reinterpret_cast<double*>(memory.total.data());
    memory::check_cuda(cudaMemcpyAsync(to, sum, sizeof *to, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync");
    stream.synchronize();
    return *to;
  }

  /// Computes the sum and keeps it in device memory.
  template <class Scalar>
  static void run_on_device(Stream stream, Vector<Scalar const> x, double* to) {
    auto& memory = stream.persistent<detail::SquaresMemory>();
    auto const chunk = chunk_of<Scalar>(x.size()), chunks = (x.size() + chunk - 1) / chunk;
    run_chunks<Scalar>(stream, x, 0, x.size(), memory.partial.data());
    total(stream, memory.partial.data(), chunks, to);
  }

  static constexpr Index max_chunks = detail::SquaresMemory::max_chunks;
  /// Returns the number of elements of x whose squares are summed separately first. A caller with whole chunks of an
  /// arena can thus compute its part of the sum.
  template <class Scalar>
  [[nodiscard]] static Index chunk_of(Index size) noexcept {
    constexpr Index step =
        detail::BlockTeam::size * detail::elements_per_access<Scalar>;  // of a block through its chunk
    constexpr Index steps = max_chunks * step;
    return std::max(smallest_chunk, (size + steps - 1) / steps * step);
  }
  /// Computes the sums of the chunks of x in [begin, end); `begin` is a multiple of the chunk. Does not read other
  /// elements.
  /// @shape sums [number of chunks of x] in device memory, of which only those are written
  template <class Scalar>
  static void run_chunks(Stream stream, Vector<Scalar const> x, Index begin, Index end, double* sums) {
    auto const chunk = chunk_of<Scalar>(x.size());
    detail::launch_grid("kernel::SumOfSquares", stream, static_cast<unsigned>((end - begin + chunk - 1) / chunk),
                        detail::threads_per_block, detail::sum_squares<Scalar>, x.data + begin, end - begin, chunk,
                        sums + begin / chunk);
  }
  /// Computes the result of `run_on_device`, bit-identical, for an x whose chunks have these sums.
  static void total(Stream stream, double const* sums, Index chunks, double* to) {
    detail::launch_grid("kernel::SumOfSquares", stream, 1, detail::threads_per_block, detail::sum_all<double>, sums,
                        chunks, to);
  }

 private:
  static constexpr Index smallest_chunk = 4096;
};

}}}  // namespace lockstep::kernel
