// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/gemm/detail/amx_tile.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

LOCKSTEP_INLINE bool multiply_bfloat16([[maybe_unused]] InstructionSet set,
                                       [[maybe_unused]] GemmBlock<float> const& block,
                                       [[maybe_unused]] GemmEpilogue epilogue) {
#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS
  if (widest_instruction_set != InstructionSet::avx512 || set != InstructionSet::avx512) return false;
  if (multiplies_bfloat16_tiles()) {
    AmxRegisters const configured;
    multiply_blocks<float, AmxTile>(block, epilogue);
    return true;
  }
  if (multiplies_bfloat16()) {
    multiply_blocks<float, Bfloat16Tile<>>(block, epilogue);
    return true;
  }
#endif
  return false;
}

}}}  // namespace lockstep::kernel::detail
