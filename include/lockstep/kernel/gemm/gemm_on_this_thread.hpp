// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/gemm/detail/gemm_blas.hpp>
#include <lockstep/kernel/gemm/detail/gemm_block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns whether a linked BLAS computes matrix products on this processor.
[[nodiscard]] inline bool products_by_blas() noexcept {
#if defined(LOCKSTEP_BLAS)
  return blas_serves(gemm_instruction_set());
#else
  return false;
#endif
}

/// Computes a matrix product on the calling thread with the best implementation. For kernels that are themselves one
/// task of the pool. Calls `epilogue(row, rows, column, columns)` for each part of C as soon as it is complete.
template <class Scalar>
void multiply_on_this_thread(GemmBlock<Scalar> const& block, GemmEpilogue epilogue = {}) {
#if defined(LOCKSTEP_BLAS)
  if (products_by_blas()) {
    multiply_blas(block);
    return epilogue(0, block.m, 0, block.n);
  }
#endif
  multiply_block(gemm_instruction_set(), block, epilogue);
}

}}}  // namespace lockstep::kernel::detail
