// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Computes x[i] = sqrt(x[i]), correctly rounded, with vectors of `bytes` bytes. Uses assembly because std::sqrt may
/// set errno, which prevents compilers from vectorizing the loop, and a header cannot request -fno-math-errno. Operands
/// are in memory because clang accepts no wide registers in a function that is compiled for any instruction set. Call
/// it inside with_best_instructions, with its vectors. It is constexpr, like its callers in optimizers, so that a
/// device may call it.
template <std::size_t bytes>
[[gnu::always_inline]] constexpr void square_roots(Vectors<bytes>, float* x, Index count) noexcept {
  Index i = 0;
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  struct Lanes {
    float values[bytes / sizeof(float)];
  };
  for (constexpr Index lanes = bytes / sizeof(float); i + lanes <= count; i += lanes) {
    auto& here = *reinterpret_cast<Lanes*>(x + i);
    if constexpr (bytes == 64) {
      asm("vsqrtps %0, %%zmm0\n\tvmovups %%zmm0, %0" : "+m"(here) : : "xmm0");
    } else if constexpr (bytes == 32) {
      asm("vsqrtps %0, %%ymm0\n\tvmovups %%ymm0, %0" : "+m"(here) : : "xmm0");
    } else {
      asm("movups %0, %%xmm0\n\tsqrtps %%xmm0, %%xmm0\n\tmovups %%xmm0, %0" : "+m"(here) : : "xmm0");
    }
  }
#elif defined(__aarch64__) && !defined(__CUDA_ARCH__)
  for (; i + 4 <= count; i += 4) vst1q_f32(x + i, vsqrtq_f32(vld1q_f32(x + i)));
#endif
  for (; i < count; ++i) x[i] = std::sqrt(x[i]);
}

/// Computes x[i] = sqrt(x[i]), correctly rounded, one element after the other.
template <std::size_t bytes>
[[gnu::always_inline]] constexpr void square_roots(Vectors<bytes>, double* x, Index count) noexcept {
  for (Index i = 0; i < count; ++i) x[i] = std::sqrt(x[i]);
}

}}}  // namespace lockstep::kernel
