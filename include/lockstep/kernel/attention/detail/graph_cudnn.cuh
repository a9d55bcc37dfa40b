// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_CUDNN)
#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/descriptor_cudnn.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// cuDNN refused a description.
struct CudnnRefusal {
  cudnnStatus_t status;
  std::string reason;

  /// Returns whether cuDNN does not support what was described. Otherwise cuDNN failed.
  [[nodiscard]] bool is_unsupported() const noexcept {
    auto const category = static_cast<int>(CUDNN_STATUS_CATEGORY(status));
    return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
  }
};

/// Owns a descriptor of cuDNN's graph interface. Its functions throw CudnnRefusal.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &owned_), "cudnnBackendCreateDescriptor");
  }
  ~CudnnDescriptor() {
    if (owned_) cudnnBackendDestroyDescriptor(owned_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(owned_, other.owned_);
    return *this;
  }
  [[nodiscard]] cudnnBackendDescriptor_t get() const noexcept { return owned_; }

  template <class Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value const* values,
                       std::size_t count) {
    check(cudnnBackendSetAttribute(owned_, name, type, static_cast<std::int64_t>(count), values),
          "cudnnBackendSetAttribute");
    return *this;
  }
  template <class Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value const& value) {
    return set(name, type, &value, 1);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, CudnnDescriptor const& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.owned_);
  }
  /// Sets nothing if `value` is null.
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, CudnnDescriptor const* value) {
    return value ? set(name, *value) : *this;
  }
  CudnnDescriptor& finalize() {
    check(cudnnBackendFinalize(owned_), "cudnnBackendFinalize");
    return *this;
  }
  /// Reads up to `count` values into `values`, and returns how many there are.
  template <class Value>
  std::size_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value* values,
                  std::size_t count) const {
    std::int64_t found = 0;
    check(cudnnBackendGetAttribute(owned_, name, type, static_cast<std::int64_t>(count), &found, values),
          "cudnnBackendGetAttribute");
    return static_cast<std::size_t>(found);
  }

 private:
  static void check(cudnnStatus_t status, char const* call) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    std::array<char, 512> message{};
    cudnnGetLastErrorString(message.data(), message.size());
    throw CudnnRefusal{status, std::string(call) + ": " + cudnnGetErrorString(status) + cudnn_remedy(status) +
                                   (message[0] ? " (" + std::string(message.data()) + ")" : "")};
  }

  cudnnBackendDescriptor_t owned_ = nullptr;
};

/// Extents or strides of a tensor, in elements.
using CudnnSizes = std::array<std::int64_t, 4>;

/// A graph of operations on tensors of four axes, as cuDNN's graph interface describes it. Products and pointwise
/// operations compute in float. Operations are in the order of the calls. The functions throw CudnnRefusal.
class CudnnGraph {
 public:
  using Tensor = CudnnDescriptor const*;  ///< owned by the graph

  /// A tensor in device memory, 16-byte aligned, which has this id when the graph runs.
  Tensor stored(std::int64_t id, cudnnDataType_t type, CudnnSizes const& extent, CudnnSizes const& stride) {
    return &tensor(id, type, extent, stride).finalize();
  }
  /// A float in host memory, which is read when the graph runs.
  Tensor number(std::int64_t id) {
    return &tensor(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1})
                .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true)
                .finalize();
  }
  /// A tensor that only exists between operations.
  Tensor temporary(CudnnSizes const& extent, CudnnSizes const& stride, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return &tensor(next_id_++, type, extent, stride)
                .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true)
                .finalize();
  }

  /// Numbers of rows of a, of columns of b, and of both's common axis, for each first index; null: the whole extent.
  struct Limits {
    Tensor m = nullptr, n = nullptr, k = nullptr;
  };
  /// c = a b, for each of the first two axes. Adjacent heads of one share a head of the other.
  Tensor product(Tensor a, Tensor b, Tensor c, Limits const& limits) {
    auto& kind = keep(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT).finalize();
    operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind)
        .set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, limits.m)
        .set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, limits.n)
        .set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, limits.k)
        .finalize();
    return c;
  }

  /// y = mode(x), mode(x, b), or mode(x, b, t), element by element; axes of extent 1 are repeated.
  Tensor pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor t, Tensor y,
                   cudnnDataType_t precision = CUDNN_DATA_FLOAT, std::optional<std::int64_t> axis = {}) {
    auto& kind = keep(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, precision);
    if (axis) kind.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, *axis);
    kind.finalize();
    operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)
        .finalize();
    return y;
  }

  /// y = the maximum or sum of x along the axes that are shorter in y.
  Tensor reduce(cudnnReduceTensorOp_t mode, Tensor x, Tensor y) {
    auto& kind = keep(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode)
        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .finalize();
    operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
        .finalize();
    return y;
  }

  /// y = x with other extents and strides, and rounded to y's type.
  Tensor reshape(Tensor x, Tensor y) {
    operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y)
        .finalize();
    return y;
  }

  [[nodiscard]] std::vector<cudnnBackendDescriptor_t> operations() const {
    std::vector<cudnnBackendDescriptor_t> out;
    for (auto const& operation : operations_) out.push_back(operation.get());
    return out;
  }

 private:
  static constexpr std::int64_t first_temporary = 1000;

  CudnnDescriptor& keep(cudnnBackendDescriptorType_t type) { return kept_.emplace_back(type); }
  CudnnDescriptor& operation(cudnnBackendDescriptorType_t type) { return operations_.emplace_back(type); }
  CudnnDescriptor& tensor(std::int64_t id, cudnnDataType_t type, CudnnSizes const& extent, CudnnSizes const& stride) {
    return keep(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16})
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extent.data(), extent.size())
        .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, stride.data(), stride.size());
  }

  std::deque<CudnnDescriptor> kept_, operations_;  // deques do not move what they contain
  std::int64_t next_id_ = first_temporary;
};

/// A graph with a deterministic engine that computes it, or the reason why there is none.
class CudnnGraphPlan {
 public:
  /// A larger workspace is not used.
  static constexpr std::int64_t max_workspace = std::int64_t{512} << 20;

  /// Takes the first engine in the ranking of cuDNN's heuristics that is deterministic, needs at most max_workspace,
  /// and can be compiled.
  /// @param describe returns the graph
  /// @throws CudaError if cuDNN fails; having no such engine is not a failure
  template <class Describe>
  CudnnGraphPlan(cudnnHandle_t handle, Describe const& describe) {
    try {
      choose(handle, describe());
    } catch (CudnnRefusal const& refusal) {
      if (!refusal.is_unsupported()) throw CudaError("Attention: " + refusal.reason);
      refusal_ = refusal.reason;
    }
  }

  [[nodiscard]] bool is_supported() const noexcept { return plan_.has_value(); }
  /// Returns the reason why no engine is used.
  [[nodiscard]] std::string const& refusal() const noexcept { return refusal_; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return static_cast<std::size_t>(workspace_); }

  /// A tensor's id and its memory.
  struct Binding {
    std::int64_t id;
    void const* data;
  };
  /// Queues the graph on the handle's stream.
  /// @throws CudaError
  void run(cudnnHandle_t handle, std::vector<Binding> const& bindings, void* workspace) const {
    std::vector<std::int64_t> ids;
    std::vector<void const*> pointers;
    for (auto const& binding : bindings) {
      ids.push_back(binding.id);
      pointers.push_back(binding.data);
    }
    try {
      CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), ids.size())
          .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), pointers.size())
          .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
          .finalize();
      check_cudnn(cudnnBackendExecute(handle, plan_->get(), pack.get()), "Attention: cudnnBackendExecute");
    } catch (CudnnRefusal const& refusal) {
      throw CudaError("Attention: " + refusal.reason);
    }
  }

 private:
  void choose(cudnnHandle_t handle, CudnnGraph const& description) {
    auto const operations = description.operations();
    CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(), operations.size())
        .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .finalize();
    CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A)
        .finalize();
    for (auto& configuration : results(heuristics)) {
      try {
        if (take(configuration)) return;
      } catch (CudnnRefusal const& refusal) {
        refusal_ = refusal.reason;  // another engine may do
      }
    }
    if (refusal_.empty()) refusal_ = "cuDNN has no engine";
  }

  [[nodiscard]] static std::vector<CudnnDescriptor> results(CudnnDescriptor const& heuristics) {
    cudnnBackendDescriptor_t* const none = nullptr;
    auto const count = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, none, 0);
    std::vector<CudnnDescriptor> owned;
    std::vector<cudnnBackendDescriptor_t> found;
    for (std::size_t i = 0; i < count; ++i)
      found.push_back(owned.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    auto const filled =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, found.data(), count);
    while (owned.size() > filled) owned.pop_back();
    return owned;
  }

  /// Makes a plan of the configuration if it meets the conditions, and returns whether it does.
  [[nodiscard]] bool take(CudnnDescriptor const& configuration) {
    if (!is_deterministic(configuration)) {
      refusal_ = "cuDNN's engines are not deterministic";
      return false;
    }
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration).finalize();
    std::int64_t bytes = 0;
    plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &bytes, 1);
    if (bytes > max_workspace) {
      refusal_ = "cuDNN needs a workspace of " + std::to_string(bytes) + " bytes";
      return false;
    }
    plan_ = std::move(plan);
    workspace_ = bytes;
    return true;
  }

  [[nodiscard]] static bool is_deterministic(CudnnDescriptor const& configuration) {
    CudnnDescriptor const engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    auto* to = engine.get();
    configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &to, 1);
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
    auto const count =
        engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes.data(), notes.size());
    for (std::size_t i = 0; i < count && i < notes.size(); ++i)
      if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    return true;
  }

  std::optional<CudnnDescriptor> plan_;
  std::string refusal_;
  std::int64_t workspace_ = 0;
};

}}}  // namespace lockstep::kernel::detail
#endif
