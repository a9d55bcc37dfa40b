// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/gemm_blas.hpp>
#include <lockstep/kernel/detail/gemm_block.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// What follows a completed part of a product when nothing does.
struct Nothing {
  void operator()(Index, Index, Index, Index) const noexcept {}
};

/// A product on the calling thread by whatever serves it best; for kernels that are themselves one task of the pool.
/// `done(row, rows, column, columns)` follows each part of C as soon as it is complete.
template <class T, class Done = Nothing>
void multiply_on_this_thread(GemmBlock<T> const& block, Done&& done = {}) {
  auto const set = gemm_instruction_set();
#if defined(LOCKSTEP_BLAS)
  if (blas_serves(set)) {
    multiply_blas(block);
    return done(0, block.m, 0, block.n);
  }
#endif
  multiply_block(set, block, done);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
