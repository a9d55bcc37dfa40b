// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The part of cuBLASLt that Lockstep uses, on the host: matrix products by definition, column-major.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

#include "cuda_runtime.h"

enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4 };
enum cublasLtReductionScheme_t { CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2 };
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_TRANSA,
  CUBLASLT_MATMUL_DESC_TRANSB,
  CUBLASLT_MATMUL_DESC_EPILOGUE,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER,
  CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
};
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
};

struct cublasLtMatmulDescOpaque_t {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a, transpose_b;
  cublasLtEpilogue_t epilogue;
  void const* bias;
  std::int64_t bias_stride;
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t stride;
  std::int32_t batch;
  std::int64_t batch_stride;
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::size_t workspace;
  std::uint32_t alignment;
};
struct cublasLtMatmulAlgo_t {
  std::uint32_t alignment, number;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state = CUBLAS_STATUS_SUCCESS;
};
struct cublasLtContext : cuda_emulation::OfDevice {};
using cublasLtHandle_t = cublasLtContext*;

namespace cuda_emulation {
/// There are three algorithms, which sum from one end or from the other; the heuristics rank the first one first.
inline constexpr std::uint32_t lt_algorithms = 3;
/// Whether all but the second take two operations.
inline std::atomic<bool> lt_second_is_fastest = false;
/// Whether several GEMMs can be computed in one call.
inline std::atomic<bool> lt_batches = true;
}  // namespace cuda_emulation

inline std::size_t cublasLtGetVersion() { return 130000; }
inline char const* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "?";
}
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return *handle = new cublasLtContext, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }

inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDescOpaque_t* operation, cublasComputeType_t compute,
                                             cudaDataType_t scale) {
  *operation = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDescOpaque_t* operation,
                                                     cublasLtMatmulDescAttributes_t attribute, void const* value,
                                                     std::size_t bytes) {
  auto const take = [=](auto& to) {
    if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    return std::memcpy(&to, value, bytes), CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(operation->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(operation->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(operation->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(operation->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return take(operation->bias_stride);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayoutOpaque_t* layout, cudaDataType_t type,
                                               std::uint64_t rows, std::uint64_t columns, std::int64_t stride) {
  if (rows == 0 || columns == 0 || stride < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = {type, rows, columns, stride, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayoutOpaque_t* layout,
                                                       cublasLtMatrixLayoutAttribute_t attribute, void const* value,
                                                       std::size_t bytes) {
  auto const take = [=](auto& to) {
    if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    return std::memcpy(&to, value, bytes), CUBLAS_STATUS_SUCCESS;
  };
  return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(layout->batch) : take(layout->batch_stride);
}
inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreferenceOpaque_t* preference) {
  *preference = {0, 256};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreferenceOpaque_t* preference,
                                                           cublasLtMatmulPreferenceAttributes_t attribute,
                                                           void const* value, std::size_t bytes) {
  if (bytes != (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4)) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) std::memcpy(&preference->alignment, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDescOpaque_t const* operation,
                                                     cublasLtMatrixLayoutOpaque_t const* a,
                                                     cublasLtMatrixLayoutOpaque_t const* b,
                                                     cublasLtMatrixLayoutOpaque_t const* c,
                                                     cublasLtMatrixLayoutOpaque_t const* d,
                                                     cublasLtMatmulPreferenceOpaque_t const* preference, int wanted,
                                                     cublasLtMatmulHeuristicResult_t* results, int* found) {
  ++cuda_emulation::counts.made;
  *found = 0;
  auto const extents = [](cublasLtMatrixLayoutOpaque_t const* x, cublasOperation_t turned) {
    return turned == CUBLAS_OP_N ? std::pair{x->rows, x->columns} : std::pair{x->columns, x->rows};
  };
  auto const [m, k] = extents(a, operation->transpose_a);
  auto const [k_again, n] = extents(b, operation->transpose_b);
  if (wanted < 1 || k != k_again || c->rows != m || c->columns != n || d->rows != m || d->columns != n)
    return CUBLAS_STATUS_INVALID_VALUE;
  // As in cuBLASLt: factors of one type, and a product of that type or float.
  if (a->type != b->type || c->type != d->type || (d->type != a->type && d->type != CUDA_R_32F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  bool const wide = a->type == CUDA_R_64F;
  if (wide != (operation->compute == CUBLAS_COMPUTE_64F) || (wide && operation->epilogue != CUBLASLT_EPILOGUE_DEFAULT))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (operation->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  // The choice of algorithm may depend on the bias's address.
  if (operation->epilogue != CUBLASLT_EPILOGUE_DEFAULT && !operation->bias) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a->batch != b->batch || a->batch != c->batch || a->batch != d->batch) return CUBLAS_STATUS_INVALID_VALUE;
  if (a->batch != 1 && !cuda_emulation::lt_batches) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *found < wanted && *found < static_cast<int>(cuda_emulation::lt_algorithms); ++*found)
    results[*found] = {{preference->alignment, static_cast<std::uint32_t>(*found)}, 0};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDescOpaque_t const*,
                                              cublasLtMatrixLayoutOpaque_t const*, cublasLtMatrixLayoutOpaque_t const*,
                                              cublasLtMatrixLayoutOpaque_t const*, cublasLtMatrixLayoutOpaque_t const*,
                                              cublasLtMatmulAlgo_t const* algorithm,
                                              cublasLtMatmulHeuristicResult_t* result) {
  if (algorithm->number >= cuda_emulation::lt_algorithms) return CUBLAS_STATUS_INVALID_VALUE;
  return *result = {*algorithm, 0}, CUBLAS_STATUS_SUCCESS;
}

namespace cuda_emulation {

/// d = by a b + keep d: the pointers and descriptors of a product.
struct Product {
  cublasLtMatmulAlgo_t algorithm;
  cublasLtMatmulDescOpaque_t operation;
  double by;
  void const* a;
  cublasLtMatrixLayoutOpaque_t a_layout;
  void const* b;
  cublasLtMatrixLayoutOpaque_t b_layout;
  double keep;
  void* d;
  cublasLtMatrixLayoutOpaque_t d_layout;
};
/// Its body, in product.cpp, is compiled with optimization in each build.
void multiply(Product const& product);

}  // namespace cuda_emulation

inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDescOpaque_t const* operation,
                                     void const* alpha, void const* a, cublasLtMatrixLayoutOpaque_t const* a_layout,
                                     void const* b, cublasLtMatrixLayoutOpaque_t const* b_layout, void const* beta,
                                     void const* c, cublasLtMatrixLayoutOpaque_t const*, void* d,
                                     cublasLtMatrixLayoutOpaque_t const* d_layout,
                                     cublasLtMatmulAlgo_t const* algorithm, void*, std::size_t, cudaStream_t stream) {
  auto const bits =
      reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) | reinterpret_cast<std::uintptr_t>(d);
  if (c != d || bits % algorithm->alignment != 0 || !handle->is_current()) return CUBLAS_STATUS_INVALID_VALUE;
  for (void const* const each : {a, b, static_cast<void const*>(d), operation->bias})
    if (cuda_emulation::is_of_another_device(each)) return CUBLAS_STATUS_EXECUTION_FAILED;
  ++cuda_emulation::counts.products;
  if (cuda_emulation::lt_second_is_fastest && algorithm->number != 1) cuda_emulation::queue(stream, [] {});
  // The factors' pointers and the descriptors are read at once, the matrices at execution.
  auto const factor = [&](void const* at) {
    return a_layout->type == CUDA_R_64F ? *static_cast<double const*>(at)
                                        : static_cast<double>(*static_cast<float const*>(at));
  };
  cuda_emulation::Product const product{*algorithm, *operation, factor(alpha), a, *a_layout,
                                        b,          *b_layout,  factor(beta),  d, *d_layout};
  auto const status = cuda_emulation::queue(stream, [=] { cuda_emulation::multiply(product); });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
