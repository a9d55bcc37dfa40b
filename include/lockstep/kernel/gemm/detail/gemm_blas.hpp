// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <mutex>

#include <lockstep/kernel/gemm/detail/gemm_block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Whether a linked BLAS computes matrix products: only if our tiles do not use the processor's vectors. Our tiles for
/// avx2 and avx512 take precedence. An OpenBLAS release that does not know the processor falls back to kernels from
/// before AVX, at a quarter of the speed.
[[nodiscard]] constexpr bool blas_serves(InstructionSet set) noexcept { return set == InstructionSet::baseline; }

#if defined(LOCKSTEP_BLAS)

// Declared here under names of our own: no BLAS header is needed, and none that the user includes can disagree.
extern "C" void lockstep_cblas_sgemm(int order, int a_transpose, int b_transpose, int m, int n, int k, float alpha,
                                     float const* a, int a_row, float const* b, int b_row, float beta, float* c,
                                     int c_row) __asm__("cblas_sgemm");
extern "C" void lockstep_cblas_dgemm(int order, int a_transpose, int b_transpose, int m, int n, int k, double alpha,
                                     double const* a, int a_row, double const* b, int b_row, double beta, double* c,
                                     int c_row) __asm__("cblas_dgemm");

/// Lock that admits one caller at a time: an OpenBLAS built without threads returns wrong results for concurrent calls.
/// The library's work space belongs to the process, so the lock does, too.
inline constinit std::mutex blas_in_use;

/// Computes the block with the linked BLAS, on this thread. The rows or the columns of A and of B must be contiguous.
/// @determinism bitwise for one library on one processor: only the block's shape determines the order of the library's
/// sums
template <class Scalar>
void multiply_blas(GemmBlock<Scalar> const& block) {
  if (block.m == 0 || block.n == 0) return;
  constexpr int row_major = 101, plain = 111, transposed = 112;
  // One row or one column can be read either way, but the library accepts the stride of only one of them.
  auto const is_row_major = [](Strided<Scalar const> x, Index columns) { return x.column == 1 && x.row >= columns; };
  auto const transpose = [&](Strided<Scalar const> x, Index columns) {
    return is_row_major(x, columns) ? plain : transposed;
  };
  auto const leading = [&](Strided<Scalar const> x, Index columns) {
    return static_cast<int>(std::max<Index>(1, is_row_major(x, columns) ? x.row : x.column));
  };
  auto const call = [&](auto* gemm) {
    gemm(row_major, transpose(block.a, block.k), transpose(block.b, block.n), static_cast<int>(block.m),
         static_cast<int>(block.n), static_cast<int>(block.k), block.alpha, block.a.data, leading(block.a, block.k),
         block.b.data, leading(block.b, block.n), block.beta, block.c, static_cast<int>(block.c_row));
  };
  {
    std::lock_guard const lock(blas_in_use);
    if constexpr (sizeof(Scalar) == sizeof(float)) {
      call(lockstep_cblas_sgemm);
    } else {
      call(lockstep_cblas_dgemm);
    }
  }
  for (Index i = 0; block.bias && i < block.m; ++i)
    for (Index j = 0; j < block.n; ++j) block.c[i * block.c_row + j] += block.bias[j];
}
#endif

}}}  // namespace lockstep::kernel::detail
