// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

/// The inline namespace of CUDA kernels. It has hidden visibility, and its name contains the architectures that the
/// kernels were compiled for. Otherwise one shared library could launch the kernel of another that was compiled for
/// another GPU.
#define LOCKSTEP_CUDA_JOIN_1(a) sm_##a
#define LOCKSTEP_CUDA_JOIN_2(a, b) sm_##a##_##b
#define LOCKSTEP_CUDA_JOIN_3(a, b, c) sm_##a##_##b##_##c
#define LOCKSTEP_CUDA_JOIN_4(a, b, c, d) sm_##a##_##b##_##c##_##d
#define LOCKSTEP_CUDA_JOIN_5(a, b, c, d, e) sm_##a##_##b##_##c##_##d##_##e
#define LOCKSTEP_CUDA_JOIN_6(a, b, c, d, e, f) sm_##a##_##b##_##c##_##d##_##e##_##f
#define LOCKSTEP_CUDA_JOIN_7(a, b, c, d, e, f, g) sm_##a##_##b##_##c##_##d##_##e##_##f##_##g
#define LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h) sm_##a##_##b##_##c##_##d##_##e##_##f##_##g##_##h
#define LOCKSTEP_CUDA_JOIN_9(a, b, c, d, e, f, g, h, i) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_1(i))
#define LOCKSTEP_CUDA_JOIN_10(a, b, c, d, e, f, g, h, i, j) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_2(i, j))
#define LOCKSTEP_CUDA_JOIN_11(a, b, c, d, e, f, g, h, i, j, k) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_3(i, j, k))
#define LOCKSTEP_CUDA_JOIN_12(a, b, c, d, e, f, g, h, i, j, k, l) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_4(i, j, k, l))
#define LOCKSTEP_CUDA_JOIN_13(a, b, c, d, e, f, g, h, i, j, k, l, m) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_5(i, j, k, l, m))
#define LOCKSTEP_CUDA_JOIN_14(a, b, c, d, e, f, g, h, i, j, k, l, m, n) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_6(i, j, k, l, m, n))
#define LOCKSTEP_CUDA_JOIN_15(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_7(i, j, k, l, m, n, o))
#define LOCKSTEP_CUDA_JOIN_16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) \
  LOCKSTEP_CUDA_GLUE(LOCKSTEP_CUDA_JOIN_8(a, b, c, d, e, f, g, h), LOCKSTEP_CUDA_JOIN_8(i, j, k, l, m, n, o, p))
#define LOCKSTEP_CUDA_GLUE(a, b) LOCKSTEP_CUDA_GLUED(a, b)
#define LOCKSTEP_CUDA_GLUED(a, b) a##_##b
#define LOCKSTEP_CUDA_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, join, ...) join
#define LOCKSTEP_CUDA_JOIN(...)                                                                                  \
  LOCKSTEP_CUDA_PICK(__VA_ARGS__, LOCKSTEP_CUDA_JOIN_16, LOCKSTEP_CUDA_JOIN_15, LOCKSTEP_CUDA_JOIN_14,           \
                     LOCKSTEP_CUDA_JOIN_13, LOCKSTEP_CUDA_JOIN_12, LOCKSTEP_CUDA_JOIN_11, LOCKSTEP_CUDA_JOIN_10, \
                     LOCKSTEP_CUDA_JOIN_9, LOCKSTEP_CUDA_JOIN_8, LOCKSTEP_CUDA_JOIN_7, LOCKSTEP_CUDA_JOIN_6,     \
                     LOCKSTEP_CUDA_JOIN_5, LOCKSTEP_CUDA_JOIN_4, LOCKSTEP_CUDA_JOIN_3, LOCKSTEP_CUDA_JOIN_2,     \
                     LOCKSTEP_CUDA_JOIN_1, )                                                                     \
  (__VA_ARGS__)
#define LOCKSTEP_CUDA_ABI LOCKSTEP_CUDA_JOIN(__CUDA_ARCH_LIST__)

#define LOCKSTEP_CUDA_KERNEL __global__ __attribute__((visibility("hidden")))

/// Before a loop in a kernel: nvcc repeats the body, so that arrays indexed by the counter stay in registers; or does
/// not repeat it, so that rarely executed code stays short.
#ifdef __CUDACC__
#define LOCKSTEP_UNROLL _Pragma("unroll")
#define LOCKSTEP_LOOP _Pragma("unroll 1")
#else
#define LOCKSTEP_UNROLL
#define LOCKSTEP_LOOP
#endif
