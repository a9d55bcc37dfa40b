// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#if defined(__SSE2__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// x[i] = sqrt(x[i]), correctly rounded. Spelt out because std::sqrt may set errno, which keeps compilers from
/// vectorising a loop over it, and a header cannot ask for -fno-math-errno. constexpr, like what calls it in
/// optimizers, so that a device may call it.
constexpr void square_roots(float* x, Index count) noexcept {
  Index i = 0;
#if defined(__CUDA_ARCH__)
#elif defined(__SSE2__)
  for (; i + 4 <= count; i += 4) _mm_storeu_ps(x + i, _mm_sqrt_ps(_mm_loadu_ps(x + i)));
#elif defined(__aarch64__)
  for (; i + 4 <= count; i += 4) vst1q_f32(x + i, vsqrtq_f32(vld1q_f32(x + i)));
#endif
  for (; i < count; ++i) x[i] = std::sqrt(x[i]);
}

constexpr void square_roots(double* x, Index count) noexcept {
  for (Index i = 0; i < count; ++i) x[i] = std::sqrt(x[i]);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
