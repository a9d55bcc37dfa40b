// SPDX-License-Identifier: Apache-2.0
/// Replaces cuBLASLt for programs compiled by nvcc: the emulation's GEMMs with cuBLASLt's function names, constants and
/// layouts. Descriptors of matrices and GEMMs are opaque to such programs, so they are the emulation's.
#include "cuda_emulation/cublasLt.h"

#include <algorithm>
#include <vector>

#include "exported.hpp"

namespace {

struct Algorithm {
  cublasLtMatmulAlgo_t emulated;
  std::byte rest[64 - sizeof(cublasLtMatmulAlgo_t)];
};
struct Result {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  std::size_t workspace_bytes;
  cublasStatus_t state;
  float waves;
  int reserved[4];
};
Result result_of(cublasLtMatmulHeuristicResult_t const& emulated) {
  return {{emulated.algo, {}}, emulated.workspaceSize, emulated.state, 1, {}};
}

}  // namespace

// NOLINTBEGIN: the names are cuBLASLt's
using Operation = cublasLtMatmulDescOpaque_t;
using Layout = cublasLtMatrixLayoutOpaque_t;
using Preference = cublasLtMatmulPreferenceOpaque_t;

PTX_EXPORTED(std::size_t, cublasLtGetVersion, ()) { return cublasLtGetVersion(); }
PTX_EXPORTED(char const*, cublasLtGetStatusString, (cublasStatus_t status)) { return cublasLtGetStatusString(status); }
PTX_EXPORTED(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle)) { return cublasLtCreate(handle); }
PTX_EXPORTED(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle)) { return cublasLtDestroy(handle); }
PTX_EXPORTED(cublasStatus_t, cublasLtMatmulDescInit_internal,
             (Operation * operation, std::size_t, cublasComputeType_t compute, cudaDataType_t scale)) {
  return cublasLtMatmulDescInit(operation, compute, scale);
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatmulDescSetAttribute,
             (Operation * operation, int attribute, void const* value, std::size_t bytes)) {
  switch (attribute) {
    case 3:
      return cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, value, bytes);
    case 4:
      return cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, value, bytes);
    case 7:
      return cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, value, bytes);
    case 8:
      return cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, value, bytes);
    case 10:
      return cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatrixLayoutInit_internal,
             (Layout * layout, std::size_t, cudaDataType_t type, std::uint64_t rows, std::uint64_t columns,
              std::int64_t stride)) {
  return cublasLtMatrixLayoutInit(layout, type, rows, columns, stride);
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
             (Layout * layout, int attribute, void const* value, std::size_t bytes)) {
  switch (attribute) {
    case 5:
      return cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, value, bytes);
    case 6:
      return cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatmulPreferenceInit_internal, (Preference * preference, std::size_t)) {
  return cublasLtMatmulPreferenceInit(preference);
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
             (Preference * preference, int attribute, void const* value, std::size_t bytes)) {
  switch (attribute) {
    case 1:
      return cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, value, bytes);
    case 3:
      return cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, value, bytes);
    case 5:
    case 6:
    case 7:
      return cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, value, bytes);
    case 8:
      return cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
             (cublasLtHandle_t handle, Operation const* operation, Layout const* a, Layout const* b, Layout const* c,
              Layout const* d, Preference const* preference, int wanted, Result* results, int* found)) {
  std::vector<cublasLtMatmulHeuristicResult_t> emulated(static_cast<std::size_t>(std::max(wanted, 1)));
  auto const status =
      cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, c, d, preference, wanted, emulated.data(), found);
  for (int i = 0; i < *found; ++i) results[i] = result_of(emulated[static_cast<std::size_t>(i)]);
  return status;
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatmulAlgoCheck,
             (cublasLtHandle_t handle, Operation const* operation, Layout const* a, Layout const* b, Layout const* c,
              Layout const* d, Algorithm const* algorithm, Result* result)) {
  cublasLtMatmulHeuristicResult_t emulated{};
  auto const status = cublasLtMatmulAlgoCheck(handle, operation, a, b, c, d, &algorithm->emulated, &emulated);
  if (status == CUBLAS_STATUS_SUCCESS) *result = result_of(emulated);
  return status;
}
PTX_EXPORTED(cublasStatus_t, cublasLtMatmul,
             (cublasLtHandle_t handle, Operation const* operation, void const* alpha, void const* a,
              Layout const* a_layout, void const* b, Layout const* b_layout, void const* beta, void const* c,
              Layout const* c_layout, void* d, Layout const* d_layout, Algorithm const* algorithm, void* workspace,
              std::size_t workspace_bytes, cudaStream_t stream)) {
  return cublasLtMatmul(handle, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
                        &algorithm->emulated, workspace, workspace_bytes, stream);
}
// NOLINTEND
