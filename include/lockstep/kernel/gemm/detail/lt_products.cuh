// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublasLt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/gemm/detail/lt_choices.cuh>
#include <lockstep/kernel/gemm/detail/lt_trial.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// @throws CudaError
inline void check_cublas(cublasStatus_t status, char const* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw CudaError(std::string(call) + ": " + cublasLtGetStatusString(status));
}

/// cuBLASLt's name for an element type. Products of float are computed in float, and in TF32 only if allowed.
template <class Scalar>
inline constexpr cudaDataType_t lt_type = [] {
  if (std::is_same_v<Scalar, double>) return CUDA_R_64F;
  if (std::is_same_v<Scalar, float16>) return CUDA_R_16F;
  return std::is_same_v<Scalar, bfloat16> ? CUDA_R_16BF : CUDA_R_32F;
}();

/// A stream's matrix products with cuBLASLt: a handle, a workspace, and descriptors and an algorithm for each kind of
/// product. The algorithm was chosen by time, or else by cuBLASLt's heuristics at the kind's first product.
class LtProducts {
 public:
  LtProducts() : workspace_(memory::CudaResource{}.allocate(workspace_bytes)) {
    check_cublas(cublasLtCreate(&handle_), "cublasLtCreate");
  }
  LtProducts(LtProducts const&) = delete;
  LtProducts& operator=(LtProducts const&) = delete;
  ~LtProducts() { cublasLtDestroy(handle_); }

  /// Computes c = alpha * op(a) op(b) + beta * c, plus the bias in each row if the kind has one, with row-major
  /// matrices.
  /// @throws CudaError if cuBLASLt has no algorithm
  template <class Scalar, class Result>
  void multiply(memory::Stream<CudaSpace> stream, LtProduct const& kind, Accumulate<Scalar> alpha, Scalar const* a,
                Scalar const* b, Accumulate<Scalar> beta, Result* c, Result const* bias) {
    if (!try_multiply(stream, kind, alpha, a, b, beta, c, bias))
      throw CudaError("Gemm: cuBLASLt has no algorithm for a product of [" + std::to_string(kind.m) + ", " +
                      std::to_string(kind.k) + "] and [" + std::to_string(kind.k) + ", " + std::to_string(kind.n) +
                      "]");
  }
  /// Does the same and returns true. Returns false without any work if cuBLASLt has no algorithm for this kind.
  template <class Scalar, class Result>
  [[nodiscard]] bool try_multiply(memory::Stream<CudaSpace> stream, LtProduct kind, Accumulate<Scalar> alpha,
                                  Scalar const* a, Scalar const* b, Accumulate<Scalar> beta, Result* c,
                                  Result const* bias) {
    kind.tf32 = tf32_ && kind.type == CUDA_R_32F;
    auto found = plans_.find(kind);
    if (found == plans_.end()) {
      if (plans_.size() == max_plans) plans_.clear();  // ragged batches each have products of their own
      found = plans_.emplace(kind, planned(kind, bias)).first;
    }
    auto& plan = found->second;
    if (!plan.algorithm) return false;
    if (bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void const*>(bias));
    check_cublas(cublasLtMatmul(handle_, &plan.operation, &alpha, b, &plan.b, a, &plan.a, &beta, c, &plan.c, c, &plan.c,
                                &plan.algorithm->value, workspace_.data(), workspace_.bytes(), stream.get()),
                 "cublasLtMatmul");
    auto const operations = 2.0 * static_cast<double>(kind.batch.count) * static_cast<double>(kind.m) *
                            static_cast<double>(kind.n) * static_cast<double>(kind.k);
    ++stream.queued().kernels;  // TF32 has half the rate of 16-bit factors
    stream.queued().add_products(kind.tf32 ? 2 * operations : operations, kind.tf32 ? 2 : sizeof(Scalar));
    return true;
  }

  /// Whether products of floats may round their factors to TF32 from now on. Off by default.
  void allow_tf32(bool allow) noexcept { tf32_ = allow; }

  /// Times cuBLASLt's algorithms for each kind of product seen so far, in memory of its own, and uses the fastest from
  /// then on. A kind whose matrices do not fit into device memory keeps its algorithm. Waits for the stream.
  [[nodiscard]] LtChoices choose_by_time(memory::Stream<CudaSpace> stream) {
    LtChoices choices{machine(), {}};
    for (auto& [kind, plan] : plans_) {
      if (!plan.algorithm) continue;
      if (LtTrial const trial(stream, kind); trial) time(stream, trial, kind, plan);
      choices.algorithms[kind] = *plan.algorithm;
    }
    chosen_ = choices.algorithms;
    return choices;
  }
  /// Uses these choices from then on. Ignores choices from another machine.
  void take(LtChoices choices) {
    if (choices.machine != machine()) return;
    chosen_ = std::move(choices.algorithms);
    plans_.clear();
  }

 private:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  static constexpr int max_candidates = 8;
  static constexpr std::size_t max_plans = 4096;

  struct Plan {
    cublasLtMatmulDescOpaque_t operation{};
    cublasLtMatrixLayoutOpaque_t a{}, b{}, c{};
    std::optional<LtAlgorithm> algorithm{};  // none: another way computes this kind
  };

  /// Gives the plan the fastest algorithm.
  void time(memory::Stream<CudaSpace> stream, LtTrial const& trial, LtProduct const& kind, Plan& plan) const {
    if (kind.with_bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void const*>(trial.bias()));
    auto minimum = std::numeric_limits<double>::infinity();
    for (auto const& candidate : candidates(plan, kind, max_candidates)) {
      auto const took = trial.milliseconds([&] {
        double const one = 1, none = 0;
        float const float_one = 1, float_none = 0;
        bool const wide = kind.type == CUDA_R_64F;
        void const *const alpha = wide ? static_cast<void const*>(&one) : &float_one,
                          *const beta = wide ? static_cast<void const*>(&none) : &float_none;
        return cublasLtMatmul(handle_, &plan.operation, alpha, trial.b(), &plan.b, trial.a(), &plan.a, beta, trial.c(),
                              &plan.c, trial.c(), &plan.c, &candidate.value, workspace_.data(), workspace_.bytes(),
                              stream.get()) == CUBLAS_STATUS_SUCCESS;
      });
      if (took < minimum) {
        minimum = took;
        plan.algorithm = candidate;
      }
    }
  }

  template <class Value>
  static void set(cublasLtMatmulDescOpaque_t& operation, cublasLtMatmulDescAttributes_t attribute, Value const& value) {
    check_cublas(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
  }
  template <class Value>
  static void set(cublasLtMatmulPreferenceOpaque_t& preference, cublasLtMatmulPreferenceAttributes_t attribute,
                  Value const& value) {
    check_cublas(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  }
  /// Describes a row-major matrix to cuBLASLt, which is column-major: [rows, columns] by rows is [columns, rows] by
  /// columns.
  static void describe(cublasLtMatrixLayoutOpaque_t& layout, cudaDataType_t type, Index rows, Index columns,
                       LtBatch const& batch, Index stride) {
    check_cublas(cublasLtMatrixLayoutInit(&layout, type, static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), columns),
                 "cublasLtMatrixLayoutInit");
    if (batch.count == 1) return;
    auto const count = static_cast<std::int32_t>(batch.count);
    std::int64_t const distance = stride;
    check_cublas(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                 "cublasLtMatrixLayoutSetAttribute");
    check_cublas(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance,
                                                  sizeof distance),
                 "cublasLtMatrixLayoutSetAttribute");
  }

  /// Returns descriptors and algorithm. In column-major order the product is c^T = op(b)^T op(a)^T: b comes first, and
  /// nothing else changes.
  [[nodiscard]] Plan planned(LtProduct const& kind, void const* bias) const {
    Plan plan;
    bool const wide = kind.type == CUDA_R_64F;
    check_cublas(cublasLtMatmulDescInit(&plan.operation,
                                        wide        ? CUBLAS_COMPUTE_64F
                                        : kind.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : CUBLAS_COMPUTE_32F,
                                        wide ? CUDA_R_64F : CUDA_R_32F),
                 "cublasLtMatmulDescInit");
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, kind.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, kind.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    auto const& batch = kind.batch;
    if (kind.with_bias) {
      set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);  // the heuristics may read the address
      if (batch.count > 1) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, std::int64_t{batch.bias_stride});
    }
    describe(plan.a, kind.type, kind.a_transposed ? kind.k : kind.m, kind.a_transposed ? kind.m : kind.k, batch,
             batch.a_stride);
    describe(plan.b, kind.type, kind.b_transposed ? kind.n : kind.k, kind.b_transposed ? kind.k : kind.n, batch,
             batch.b_stride);
    describe(plan.c, kind.c_type, kind.m, kind.n, batch, batch.c_stride);

    cublasLtMatmulHeuristicResult_t checked{};
    if (auto const chosen = chosen_.find(kind);
        chosen != chosen_.end() &&
        cublasLtMatmulAlgoCheck(handle_, &plan.operation, &plan.b, &plan.a, &plan.c, &plan.c, &chosen->second.value,
                                &checked) == CUBLAS_STATUS_SUCCESS &&
        checked.workspaceSize <= workspace_.bytes()) {
      plan.algorithm = chosen->second;
      return plan;
    }
    if (auto const all = candidates(plan, kind, 1); !all.empty()) plan.algorithm = all.front();
    return plan;
  }

  /// Returns at most `maximum` algorithms that cuBLASLt's heuristics offer, in order of expected speed; or none.
  [[nodiscard]] std::vector<LtAlgorithm> candidates(Plan& plan, LtProduct const& kind, int maximum) const {
    cublasLtMatmulPreferenceOpaque_t preference{};
    check_cublas(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_.bytes());
    // Partial sums are added in the workspace, in a fixed order; the in-place scheme adds them in order of arrival.
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(preference, matrix, kind.alignment);
    cublasLtMatmulHeuristicResult_t results[max_candidates];
    int found = 0;
    auto const status = cublasLtMatmulAlgoGetHeuristic(handle_, &plan.operation, &plan.b, &plan.a, &plan.c, &plan.c,
                                                       &preference, std::min(maximum, max_candidates), results, &found);
    std::vector<LtAlgorithm> found_algorithms;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i)
      if (results[i].state == CUBLAS_STATUS_SUCCESS) found_algorithms.push_back({results[i].algo});
    return found_algorithms;
  }

  [[nodiscard]] static std::string machine() {
    int device = 0;
    memory::check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    auto const attribute = [&](cudaDeviceAttr which) {
      int value = 0;
      memory::check_cuda(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
      return std::to_string(value);
    };
    return "cuBLASLt " + std::to_string(cublasLtGetVersion()) + ", compute capability " +
           attribute(cudaDevAttrComputeCapabilityMajor) + "." + attribute(cudaDevAttrComputeCapabilityMinor) + ", " +
           attribute(cudaDevAttrMultiProcessorCount) + " multiprocessors";
  }

  bool tf32_ = false;
  memory::Block workspace_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<LtProduct, Plan> plans_;
  std::map<LtProduct, LtAlgorithm> chosen_;
};

}}}  // namespace lockstep::kernel::detail
