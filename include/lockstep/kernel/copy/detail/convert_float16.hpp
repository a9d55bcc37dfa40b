// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/core/float16.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Converts with the processor's own instructions for float16 (F16C), which all processors with AVX2 have. The bits
/// equal the type's own conversions, except that a signalling NaN becomes quiet.
/// @returns whether it converted; otherwise, and for other types, it did nothing
template <class From, class To>
[[nodiscard]] constexpr bool convert_float16(From const*, To*, Index) noexcept {
  return false;
}

#if LOCKSTEP_HAS_INSTRUCTION_SETS

/// Required after the wide instructions below, which the compiler does not know: without it, SSE after AVX is slow. The
/// clobbers keep the compiler from using the registers that lose their upper halves.
[[gnu::always_inline, gnu::target("avx2")]] inline void zero_upper_halves() noexcept {
  asm volatile("vzeroupper" ::
                   : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                     "xmm12", "xmm13", "xmm14", "xmm15");
}

// Separate from their callers, which are compiled for any processor. Written as assembly because the header of the
// intrinsics takes longer to compile than all of this.
[[gnu::noinline, gnu::target("avx2")]] inline void widen_float16(float16 const* from, float* to, Index count) noexcept {
  Index i = 0;
  for (; i + 8 <= count; i += 8)
    asm("vcvtph2ps %1, %%ymm0\n\tvmovups %%ymm0, %0"
        : "=m"(*reinterpret_cast<float(*)[8]>(to + i))
        : "m"(*reinterpret_cast<float16 const(*)[8]>(from + i))
        : "xmm0");
  zero_upper_halves();
  for (; i < count; ++i) to[i] = from[i];
}
[[gnu::noinline, gnu::target("avx2")]] inline void round_to_float16(float const* from, float16* to,
                                                                    Index count) noexcept {
  Index i = 0;
  for (; i + 8 <= count; i += 8)
    asm("vmovups %1, %%ymm0\n\tvcvtps2ph $0, %%ymm0, %0"  // to nearest, ties to even
        : "=m"(*reinterpret_cast<float16(*)[8]>(to + i))
        : "m"(*reinterpret_cast<float const(*)[8]>(from + i))
        : "xmm0");
  zero_upper_halves();
  for (; i < count; ++i) to[i] = float16(from[i]);
}

[[nodiscard]] inline bool convert_float16(float16 const* from, float* to, Index count) noexcept {
  if (best_instruction_set() == InstructionSet::baseline) return false;
  widen_float16(from, to, count);
  return true;
}
[[nodiscard]] inline bool convert_float16(float const* from, float16* to, Index count) noexcept {
  if (best_instruction_set() == InstructionSet::baseline) return false;
  round_to_float16(from, to, count);
  return true;
}

#endif

}}}  // namespace lockstep::kernel::detail
