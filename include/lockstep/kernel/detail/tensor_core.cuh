// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/detail/fast_math.cuh>
#include <lockstep/kernel/detail/launch.cuh>

/// Instructions of tensor cores and asynchronous copies, from compute capability 8.0 on. Older devices and the tests'
/// emulation execute the same operations by exchanging values between lanes.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define LOCKSTEP_HAS_TENSOR_CORES 1
#else
#define LOCKSTEP_HAS_TENSOR_CORES 0
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Whether products of this type run on tensor cores: those of 16-bit types, and those of float as three products.
template <class Scalar>
inline constexpr bool on_tensor_cores = sizeof(Scalar) < sizeof(double);

/// Whether all GPUs that this file is compiled for have these instructions.
inline constexpr bool always_tensor_cores = [] {
  for (int const architecture : {__CUDA_ARCH_LIST__})
    if (architecture < 800) return false;
  return true;
}();

/// Returns whether the current GPU has them. @throws CudaError
[[nodiscard]] inline bool has_tensor_cores() {
  int device = 0, major = 0;
  memory::check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  memory::check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                     "cudaDeviceGetAttribute");
  return major >= 8;
}

/// Two adjacent elements of 16 bits, the first in the low half.
using ElementPair = std::uint32_t;

inline namespace LOCKSTEP_CUDA_ABI {

/// Rounds two numbers to Scalar, to nearest.
template <class Scalar>
[[nodiscard]] __device__ ElementPair pack(float first, float second) noexcept {
#if LOCKSTEP_HAS_TENSOR_CORES
  ElementPair pair;
  if constexpr (std::is_same_v<Scalar, float16>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return ElementPair{Scalar(first).bits} | ElementPair{Scalar(second).bits} << 16;
#endif
}

/// Returns element 0 or 1 of a pair.
template <class Scalar>
[[nodiscard]] __device__ float element(ElementPair pair, int which) noexcept {
  Scalar value;
  value.bits = static_cast<std::uint16_t>(pair >> 16 * which);
  return value;
}

#if !LOCKSTEP_HAS_TENSOR_CORES
/// Words that a lane needs for step k of 4 of a product: words 0 and 1, then 2 and 3, of its rows' lane, and both words
/// of the lanes of its two columns. The first word of a pair is the lower half.
struct ExchangedWords {
  std::uint64_t rows[2], columns[2];

  __device__ ExchangedWords(int k, std::uint32_t const (&a)[4], std::uint32_t b0, std::uint32_t b1) noexcept {
    auto const g = static_cast<int>(lane()) / 4, t = static_cast<int>(lane()) % 4;
    auto const pair = [](std::uint32_t first, std::uint32_t second) {
      return std::uint64_t{first} | std::uint64_t{second} << 32;
    };
    rows[0] = __shfl_sync(~0u, pair(a[0], a[1]), 4 * g + k);
    rows[1] = __shfl_sync(~0u, pair(a[2], a[3]), 4 * g + k);
    columns[0] = __shfl_sync(~0u, pair(b0, b1), 8 * t + k);
    columns[1] = __shfl_sync(~0u, pair(b0, b1), 8 * t + 4 + k);
  }
  /// Returns the word of row m (g or g + 8), or of column n, in half `half` of the depth.
  [[nodiscard]] __device__ std::uint32_t row(int m, int half) const noexcept {
    return static_cast<std::uint32_t>(rows[half] >> 32 * m);
  }
  [[nodiscard]] __device__ std::uint32_t column(int n, int half) const noexcept {
    return static_cast<std::uint32_t>(columns[n] >> 32 * half);
  }
};
#endif

/// Computes C += A B for A [16, 16], B [16, 8], C [16, 8], by all lanes of a warp. With g = lane / 4 and t = lane % 4,
/// a lane holds these elements:
/// a[0] = A[g][2t, 2t + 1], a[1] = A[g + 8][…], a[2] = A[g][2t + 8, 2t + 9], a[3] = A[g + 8][…];
/// b0 = B[2t, 2t + 1][g], b1 = B[2t + 8, 2t + 9][g]; c[0, 1] = C[g][2t, 2t + 1], c[2, 3] = C[g + 8][2t, 2t + 1].
/// @source PTX ISA, mma.sync.aligned.m16n8k16
template <class Scalar>
__device__ void multiply_add(float (&c)[4], ElementPair const (&a)[4], ElementPair b0, ElementPair b1) noexcept {
#if LOCKSTEP_HAS_TENSOR_CORES
  if constexpr (std::is_same_v<Scalar, float16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  for (int k = 0; k < 4; ++k) {
    ExchangedWords const words(k, a, b0, b1);
    for (int half = 0; half < 2; ++half)
      for (int i = 0; i < 2; ++i)
        for (int n = 0; n < 4; ++n)
          c[n] += element<Scalar>(words.row(n / 2, half), i) * element<Scalar>(words.column(n % 2, half), i);
  }
#endif
}

/// Computes C += A B for A [16, 8], B [8, 8], C [16, 8] of floats, by all lanes of a warp. A lane holds a[0] = A[g][t],
/// a[1] = A[g + 8][t], a[2] = A[g][t + 4], a[3] = A[g + 8][t + 4]; b0 = B[t][g], b1 = B[t + 4][g]; c as above.
/// Each factor is the sum of two TF32 numbers of 11 bits. Three of their four products are computed; the fourth, and
/// the bits after the second number, are below 2^-21 of the product.
/// @source PTX ISA, mma.sync.aligned.m16n8k8
__device__ inline void multiply_add(float (&c)[4], float const (&a)[4], float b0, float b1) noexcept {
#if LOCKSTEP_HAS_TENSOR_CORES
  auto const upper = [](float x) { return __float_as_uint(x) & 0xffffe000u; };  // the bits that tensor cores read
  auto const rest = [&](float x) { return __float_as_uint(x - __uint_as_float(upper(x))); };
  auto const add = [&](std::uint32_t x0, std::uint32_t x1, std::uint32_t x2, std::uint32_t x3, std::uint32_t y0,
                       std::uint32_t y1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(y0), "r"(y1));
  };
  add(rest(a[0]), rest(a[1]), rest(a[2]), rest(a[3]), upper(b0), upper(b1));
  add(upper(a[0]), upper(a[1]), upper(a[2]), upper(a[3]), rest(b0), rest(b1));
  add(upper(a[0]), upper(a[1]), upper(a[2]), upper(a[3]), upper(b0), upper(b1));
#else
  std::uint32_t rows[4];
  for (int i = 0; i < 4; ++i) rows[i] = std::bit_cast<std::uint32_t>(a[i]);
  for (int k = 0; k < 4; ++k) {
    ExchangedWords const words(k, rows, std::bit_cast<std::uint32_t>(b0), std::bit_cast<std::uint32_t>(b1));
    for (int half = 0; half < 2; ++half)
      for (int n = 0; n < 4; ++n)
        c[n] += std::bit_cast<float>(words.row(n / 2, half)) * std::bit_cast<float>(words.column(n % 2, half));
  }
#endif
}

enum class Transposed { no, yes };

/// Loads four 8 x 8 matrices of 16-bit elements from shared memory, by all lanes of a warp. Lane l passes the address
/// of row l % 8 of matrix l / 8, aligned to 16 bytes. to[m] receives elements [lane / 4][2 * (lane % 4) + {0, 1}] of
/// matrix m, or of its transpose. A matrix of 8 x 4 floats is loaded in the same way, without transposition: to[m]
/// receives element [lane / 4][lane % 4].
/// @source PTX ISA, ldmatrix.sync.aligned.m8n8.x4
template <Transposed transposed>
__device__ void load_matrices(ElementPair (&to)[4], std::uint16_t const* row) noexcept {
#if LOCKSTEP_HAS_TENSOR_CORES
  auto const address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed == Transposed::yes)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#else
  auto const g = static_cast<int>(lane()) / 4, t = static_cast<int>(lane()) % 4;
  auto const row_of = [&](int lane) {
    return reinterpret_cast<std::uint16_t const*>(__shfl_sync(~0u, reinterpret_cast<std::uintptr_t>(row), lane));
  };
  for (int m = 0; m < 4; ++m) {
    if constexpr (transposed == Transposed::yes) {
      auto const *const first = row_of(8 * m + 2 * t), *const second = row_of(8 * m + 2 * t + 1);
      to[m] = ElementPair{first[g]} | ElementPair{second[g]} << 16;
    } else {
      auto const* const from = row_of(8 * m + g);
      to[m] = ElementPair{from[2 * t]} | ElementPair{from[2 * t + 1]} << 16;
    }
  }
#endif
}

__device__ inline void load_matrices(float (&to)[4], float const* row) noexcept {
  ElementPair words[4];
  load_matrices<Transposed::no>(words, reinterpret_cast<std::uint16_t const*>(row));
  std::memcpy(to, words, sizeof to);
}

/// Starts a copy of `bytes` (8 or 16, aligned) from global to shared memory, or of zeros if not `valid`; `from` is then
/// not read. The thread sees the copy after `wait_for_copies`, other threads after the next barrier.
template <int bytes>
__device__ void copy_async(void* shared, void const* from, bool valid) noexcept {
  static_assert(bytes == 8 || bytes == 16);
#if LOCKSTEP_HAS_TENSOR_CORES
  auto const address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  auto const size = valid ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(size) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from), "r"(size) : "memory");
#else
  if (valid)
    std::memcpy(shared, from, bytes);
  else
    std::memset(shared, 0, bytes);
#endif
}

/// Waits for all copies that this thread has started.
__device__ inline void wait_for_copies() noexcept {
#if LOCKSTEP_HAS_TENSOR_CORES
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// Ends a group of this thread's copies: those since the last group.
__device__ inline void end_copies() noexcept {
#if LOCKSTEP_HAS_TENSOR_CORES
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits for all groups of this thread's copies, except for the `later` last ones.
template <int later>
__device__ void wait_for_earlier_copies() noexcept {
#if LOCKSTEP_HAS_TENSOR_CORES
  asm volatile("cp.async.wait_group %0;" ::"n"(later) : "memory");
#endif
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail

#undef LOCKSTEP_HAS_TENSOR_CORES
