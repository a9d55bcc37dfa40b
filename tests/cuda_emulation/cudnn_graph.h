// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The part of cuDNN's graph interface that Lockstep uses, on the host. A graph is checked when it is finalized, and
/// its operations are computed one by one as they are described, in float. The first engines that the heuristics rank
/// are not deterministic, cannot be compiled, or need too much workspace.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

#include "cuda_runtime.h"

enum cudnnBackendDescriptorType_t {
  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
  CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
  CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
  CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR = 31,
};
enum cudnnBackendAttributeType_t {
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_NUMERICAL_NOTE = 11,
  CUDNN_TYPE_POINTWISE_MODE = 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,
};
enum cudnnBackendAttributeName_t {
  CUDNN_ATTR_POINTWISE_MODE = 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
  CUDNN_ATTR_POINTWISE_AXIS = 9,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
  CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
  CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,
  CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
  CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
  CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
  CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,
  CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC = 1525,
  CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC = 1526,
  CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC = 1527,
  CUDNN_ATTR_REDUCTION_OPERATOR = 1600,
  CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,
  CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
  CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611,
  CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,
  CUDNN_ATTR_OPERATION_RESHAPE_XDESC = 2200,
  CUDNN_ATTR_OPERATION_RESHAPE_YDESC = 2201,
};
enum cudnnPointwiseMode_t {
  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_MUL = 1,
  CUDNN_POINTWISE_DIV = 6,
  CUDNN_POINTWISE_SUB = 9,
  CUDNN_POINTWISE_EXP = 13,
  CUDNN_POINTWISE_LOG = 15,
  CUDNN_POINTWISE_CMP_GE = 303,
  CUDNN_POINTWISE_CMP_LT = 304,
  CUDNN_POINTWISE_LOGICAL_AND = 400,
  CUDNN_POINTWISE_GEN_INDEX = 501,
  CUDNN_POINTWISE_BINARY_SELECT = 601,
};
enum cudnnReduceTensorOp_t { CUDNN_REDUCE_TENSOR_ADD = 0, CUDNN_REDUCE_TENSOR_MAX = 3 };
enum cudnnBackendHeurMode_t { CUDNN_HEUR_MODE_A = 3 };
enum cudnnBackendNumericalNote_t {
  CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
  CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10
};
using cudnnBackendDescriptor_t = void*;

namespace cuda_emulation {

/// Whether cuDNN refuses all graphs.
inline bool cudnn_refuses_graphs = false;
/// Alive descriptors.
inline std::int64_t cudnn_descriptors = 0;

struct CudnnGraphTensor {
  std::int64_t id = 0;
  cudnnDataType_t type{};
  std::array<std::int64_t, 4> extent{}, stride{};
  bool is_virtual = false, by_value = false;

  using Place = std::array<std::int64_t, 4>;
  [[nodiscard]] std::size_t offset(Place const& at) const {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < 4; ++i) out += (extent[i] == 1 ? 0 : at[i]) * stride[i];  // repeats short axes
    return static_cast<std::size_t>(out);
  }
  [[nodiscard]] std::size_t size() const {
    return offset({extent[0] - 1, extent[1] - 1, extent[2] - 1, extent[3] - 1}) + 1;
  }
  [[nodiscard]] std::int64_t elements() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
  [[nodiscard]] std::size_t element_bytes() const {
    return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2 : type == CUDNN_DATA_BOOLEAN ? 1 : 4;
  }
  template <class F>
  void each(F const& f) const {
    Place p{};
    for (p[0] = 0; p[0] < extent[0]; ++p[0])
      for (p[1] = 0; p[1] < extent[1]; ++p[1])
        for (p[2] = 0; p[2] < extent[2]; ++p[2])
          for (p[3] = 0; p[3] < extent[3]; ++p[3]) f(p);
  }
};

struct CudnnOperation {
  cudnnBackendDescriptorType_t type{};
  int mode = 0;
  std::int64_t axis = -1;
  std::vector<CudnnGraphTensor> in;                         // matrix products: a, b; pointwise: x, b, t
  std::array<std::optional<CudnnGraphTensor>, 3> limits{};  // m, n, k
  CudnnGraphTensor out;
};

/// Values of the graph's tensors while it runs.
class CudnnGraphRun {
 public:
  using Tensor = CudnnGraphTensor;
  using Place = Tensor::Place;

  explicit CudnnGraphRun(std::map<std::int64_t, void*> pointers, std::map<std::int64_t, float> numbers)
      : pointers_(std::move(pointers)), numbers_(std::move(numbers)) {}

  void run(CudnnOperation const& o) {
    if (o.out.is_virtual) virtuals_[o.out.id].assign(o.out.size(), std::numeric_limits<float>::quiet_NaN());
    switch (o.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return multiply(o);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduce(o);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return reshape(o);
      default:
        return o.out.each([&](Place const& at) { set(o.out, at, pointwise(o, at)); });
    }
  }

 private:
  [[nodiscard]] float get(Tensor const& t, Place const& at) const {
    if (t.by_value) return numbers_.at(t.id);
    auto const i = t.offset(at);
    if (t.is_virtual) return virtuals_.at(t.id).at(i);
    auto const* const data = pointers_.at(t.id);
    switch (t.type) {
      case CUDNN_DATA_BFLOAT16:
        return static_cast<float>(static_cast<lockstep::bfloat16 const*>(data)[i]);
      case CUDNN_DATA_HALF:
        return static_cast<float>(static_cast<lockstep::float16 const*>(data)[i]);
      case CUDNN_DATA_INT32:
        return static_cast<float>(static_cast<std::int32_t const*>(data)[i]);
      default:
        return static_cast<float const*>(data)[i];
    }
  }
  void set(Tensor const& t, Place const& at, float x) {
    auto const i = t.offset(at);
    auto const in_half = static_cast<lockstep::float16>(x);
    auto const in_bfloat16 = static_cast<lockstep::bfloat16>(x);
    if (t.is_virtual) {
      if (t.type == CUDNN_DATA_HALF) x = static_cast<float>(in_half);
      if (t.type == CUDNN_DATA_BFLOAT16) x = static_cast<float>(in_bfloat16);
      virtuals_.at(t.id).at(i) = x;
    } else if (t.type == CUDNN_DATA_BFLOAT16) {
      static_cast<lockstep::bfloat16*>(pointers_.at(t.id))[i] = in_bfloat16;
    } else if (t.type == CUDNN_DATA_HALF) {
      static_cast<lockstep::float16*>(pointers_.at(t.id))[i] = in_half;
    } else {
      static_cast<float*>(pointers_.at(t.id))[i] = x;
    }
  }

  /// Elements beyond the limits are undefined, and factors beyond them are not read.
  void multiply(CudnnOperation const& o) {
    auto const &a = o.in[0], &b = o.in[1];
    o.out.each([&](Place const& at) {
      auto const limit = [&](std::size_t which, std::int64_t extent) {
        return o.limits[which] ? static_cast<std::int64_t>(get(*o.limits[which], {at[0], 0, 0, 0})) : extent;
      };
      if (at[2] >= limit(0, o.out.extent[2]) || at[3] >= limit(1, o.out.extent[3]))
        return set(o.out, at, std::numeric_limits<float>::quiet_NaN());
      auto const head = [&](Tensor const& t) { return at[1] * t.extent[1] / o.out.extent[1]; };
      float sum = 0;
      for (std::int64_t k = 0; k < limit(2, a.extent[3]); ++k)
        sum += get(a, {at[0], head(a), at[2], k}) * get(b, {at[0], head(b), k, at[3]});
      set(o.out, at, sum);
    });
  }
  /// Adjacent heads are reduced to one.
  void reduce(CudnnOperation const& o) {
    std::map<Place, float> sums;
    o.in[0].each([&](Place at) {
      float const x = get(o.in[0], at);
      for (std::size_t i = 0; i < 4; ++i) at[i] = at[i] * o.out.extent[i] / o.in[0].extent[i];
      auto const [sum, is_first] = sums.emplace(at, x);
      if (!is_first) sum->second = o.mode == CUDNN_REDUCE_TENSOR_MAX ? std::fmax(sum->second, x) : sum->second + x;
    });
    for (auto const& [at, sum] : sums) set(o.out, at, sum);
  }
  /// Both tensors have the same memory.
  void reshape(CudnnOperation const& o) {
    std::map<std::size_t, float> memory;
    o.in[0].each([&](Place const& at) { memory[o.in[0].offset(at)] = get(o.in[0], at); });
    o.out.each([&](Place const& at) { set(o.out, at, memory.at(o.out.offset(at))); });
  }
  [[nodiscard]] float pointwise(CudnnOperation const& o, Place const& at) const {
    auto const in = [&](std::size_t i) { return get(o.in.at(i), at); };
    switch (o.mode) {
      case CUDNN_POINTWISE_ADD:
        return in(0) + in(1);
      case CUDNN_POINTWISE_MUL:
        return in(0) * in(1);
      case CUDNN_POINTWISE_DIV:
        return in(0) / in(1);
      case CUDNN_POINTWISE_SUB:
        return in(0) - in(1);
      case CUDNN_POINTWISE_EXP:
        return std::exp(in(0));
      case CUDNN_POINTWISE_LOG:
        return std::log(in(0));
      case CUDNN_POINTWISE_CMP_GE:
        return in(0) >= in(1);
      case CUDNN_POINTWISE_CMP_LT:
        return in(0) < in(1);
      case CUDNN_POINTWISE_LOGICAL_AND:
        return in(0) != 0 && in(1) != 0;
      case CUDNN_POINTWISE_GEN_INDEX:
        return static_cast<float>(at.at(static_cast<std::size_t>(o.axis)));
      default:
        return in(2) != 0 ? in(0) : in(1);
    }
  }

  std::map<std::int64_t, void*> pointers_;
  std::map<std::int64_t, float> numbers_;
  std::map<std::int64_t, std::vector<float>> virtuals_;
};

enum CudnnEngine { engine_out_of_order, engine_uncompilable, engine_greedy, engine_usable, engines };

struct CudnnBackend {
  struct Values {
    cudnnBackendAttributeType_t type;
    std::int64_t count;
    std::vector<std::byte> bytes;
  };
  using Attribute = cudnnBackendAttributeName_t;

  explicit CudnnBackend(cudnnBackendDescriptorType_t is) : type(is) { ++cudnn_descriptors; }
  ~CudnnBackend() { --cudnn_descriptors; }

  [[nodiscard]] static std::size_t bytes_of(cudnnBackendAttributeType_t type) {
    return type == CUDNN_TYPE_BOOLEAN ? 1
           : type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_HANDLE ||
                   type == CUDNN_TYPE_BACKEND_DESCRIPTOR
               ? 8
               : 4;
  }
  [[nodiscard]] bool has(Attribute name) const { return attributes.count(name) != 0; }
  template <class Value>
  [[nodiscard]] std::vector<Value> all(Attribute name) const {
    auto const& values = attributes.at(name);
    std::vector<Value> out(static_cast<std::size_t>(values.count));
    std::memcpy(out.data(), values.bytes.data(), values.bytes.size());
    return out;
  }
  template <class Value>
  [[nodiscard]] Value one(Attribute name) const {
    auto const& values = attributes.at(name);
    if (values.count != 1 || values.bytes.size() != sizeof(Value)) throw std::out_of_range("attribute");
    Value out;
    std::memcpy(&out, values.bytes.data(), sizeof out);
    return out;
  }
  [[nodiscard]] CudnnBackend const& descriptor(Attribute name, cudnnBackendDescriptorType_t of) const {
    auto const* const out = static_cast<CudnnBackend const*>(one<cudnnBackendDescriptor_t>(name));
    if (!out->finalized || out->type != of) throw std::out_of_range("descriptor");
    return *out;
  }
  [[nodiscard]] CudnnGraphTensor tensor(Attribute name) const {
    return descriptor(name, CUDNN_BACKEND_TENSOR_DESCRIPTOR).as_tensor();
  }
  [[nodiscard]] CudnnGraphTensor as_tensor() const {
    CudnnGraphTensor t{.id = one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
                       .type = one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
                       .extent = {},
                       .stride = {}};
    auto const extent = all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
               stride = all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    for (std::size_t i = 0; i < 4; ++i) {
      t.extent[i] = extent.at(i);
      t.stride[i] = stride.at(i);
    }
    if (extent.size() != 4 || stride.size() != 4 || t.elements() < 1 ||
        one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 16)
      throw std::out_of_range("tensor");
    t.is_virtual = has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    t.by_value = has(CUDNN_ATTR_TENSOR_IS_BY_VALUE) && one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    return t;
  }

  [[nodiscard]] CudnnOperation as_operation() const {
    CudnnOperation o;
    o.type = type;
    bool fits = true;
    auto const repeats = [](CudnnGraphTensor const& t, CudnnGraphTensor const& y) {
      for (std::size_t i = 0; i < 4; ++i)
        if (t.extent[i] != 1 && t.extent[i] != y.extent[i]) return false;
      return true;
    };
    if (type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      static_cast<void>(descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_BACKEND_MATMUL_DESCRIPTOR));
      o.in = {tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC), tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC)};
      o.out = tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
      Attribute const names[] = {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                                 CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
                                 CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC};
      for (std::size_t i = 0; i < 3; ++i)
        if (has(names[i])) {
          o.limits[i] = tensor(names[i]);
          fits = fits && o.limits[i]->type == CUDNN_DATA_INT32 && o.limits[i]->elements() == o.out.extent[0];
        }
      auto const &a = o.in[0].extent, &b = o.in[1].extent, &c = o.out.extent;
      fits = fits && a[2] == c[2] && b[3] == c[3] && a[3] == b[2] && a[0] == c[0] && b[0] == c[0] &&
             c[1] == std::max(a[1], b[1]) && c[1] % a[1] == 0 && c[1] % b[1] == 0;
    } else if (type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      auto const& kind = descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
      o.mode = kind.one<int>(CUDNN_ATTR_REDUCTION_OPERATOR);
      fits = kind.one<cudnnDataType_t>(CUDNN_ATTR_REDUCTION_COMP_TYPE) == CUDNN_DATA_FLOAT;
      o.in = {tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC)};
      o.out = tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      for (std::size_t i = 0; i < 4; ++i) fits = fits && o.in[0].extent[i] % o.out.extent[i] == 0;
    } else if (type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      o.in = {tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC)};
      o.out = tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
      fits = o.in[0].elements() == o.out.elements() && o.in[0].size() == o.out.size();
    } else {
      auto const& kind = descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
      o.mode = kind.one<int>(CUDNN_ATTR_POINTWISE_MODE);
      if (kind.has(CUDNN_ATTR_POINTWISE_AXIS)) o.axis = kind.one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
      for (auto name : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                        CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
        if (has(name)) o.in.push_back(tensor(name));
      o.out = tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
      bool const unary =
          o.mode == CUDNN_POINTWISE_EXP || o.mode == CUDNN_POINTWISE_LOG || o.mode == CUDNN_POINTWISE_GEN_INDEX;
      fits = o.in.size() == (unary                                     ? 1u
                             : o.mode == CUDNN_POINTWISE_BINARY_SELECT ? 3u
                                                                       : 2u) &&
             (o.axis >= 0) == (o.mode == CUDNN_POINTWISE_GEN_INDEX) && o.axis < 4;
      for (auto const& in : o.in) fits = fits && repeats(in, o.out);
    }
    if (!fits) throw std::out_of_range("operation");
    return o;
  }

  /// Throws unless each temporary is written once, before it is read, each other tensor is read or written in one way,
  /// and tensors with equal ids are equal.
  [[nodiscard]] std::vector<CudnnOperation> as_graph() const {
    std::vector<CudnnOperation> out;
    std::map<std::int64_t, CudnnGraphTensor> known;
    std::map<std::int64_t, bool> written;
    auto const meet = [&](CudnnGraphTensor const& t) {
      auto const& same = known.emplace(t.id, t).first->second;
      if (same.extent != t.extent || same.stride != t.stride || same.type != t.type) throw std::out_of_range("id");
    };
    for (auto* const operation : all<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
      auto const& described = *static_cast<CudnnBackend const*>(operation);
      if (!described.finalized) throw std::out_of_range("operation");
      out.push_back(described.as_operation());
      for (auto const& in : out.back().in) {
        meet(in);
        if (in.is_virtual && !written[in.id]) throw std::out_of_range("unwritten");
      }
      meet(out.back().out);
      if (std::exchange(written[out.back().out.id], true) || out.back().out.by_value)
        throw std::out_of_range("written");
    }
    return out;
  }

  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<Attribute, Values> attributes;
  std::shared_ptr<std::vector<CudnnOperation> const> graph;  // graphs, and what is made from them
  int engine = -1;                                           // configurations, engines and plans
  static constexpr std::int64_t workspace = 1001;
};

inline CudnnBackend& backend(cudnnBackendDescriptor_t descriptor) { return *static_cast<CudnnBackend*>(descriptor); }

inline void finalize(CudnnBackend& d) {
  if (d.finalized) throw std::out_of_range("finalized twice");
  auto const from = [&](cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) {
    auto const& source = d.descriptor(name, type);
    d.graph = source.graph;
    d.engine = source.engine;
  };
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      static_cast<void>(d.as_tensor());
      break;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      static_cast<void>(d.one<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC));
      break;
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
      if (d.one<cudnnDataType_t>(CUDNN_ATTR_MATMUL_COMP_TYPE) != CUDNN_DATA_FLOAT) throw std::out_of_range("type");
      break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      static_cast<void>(d.as_operation());
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      if (!d.one<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)->is_current()) throw std::out_of_range("handle");
      d.graph = std::make_shared<std::vector<CudnnOperation> const>(d.as_graph());
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      static_cast<void>(d.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE));
      from(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      from(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      break;
    default:
      break;
  }
  d.finalized = true;
}

/// Reads numbers at once, and runs the graph on the stream.
inline cudnnStatus_t execute(cudnnContext& handle, CudnnBackend const& plan, CudnnBackend const& pack) {
  auto const ids = pack.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto const data = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* const workspace = pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  std::map<std::int64_t, void*> given, pointers;
  std::map<std::int64_t, float> numbers;
  if (ids.size() != data.size()) return CUDNN_STATUS_BAD_PARAM;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!given.emplace(ids[i], data[i]).second) return CUDNN_STATUS_BAD_PARAM;  // twice
  auto const bind = [&](CudnnGraphTensor const& t) {
    if (t.is_virtual) return true;
    auto* const at = given.at(t.id);
    if (t.by_value) return numbers[t.id] = *static_cast<float const*>(at), true;
    pointers[t.id] = at;
    auto const block = Memory::instance().find(at);
    return at && reinterpret_cast<std::uintptr_t>(at) % 16 == 0 && block && !block->on_host &&
           block->holds(at, t.size() * t.element_bytes());
  };
  for (auto const& operation : *plan.graph) {
    for (auto const& in : operation.in)
      if (!bind(in)) return CUDNN_STATUS_BAD_PARAM;
    for (auto const& limit : operation.limits)
      if (limit && !bind(*limit)) return CUDNN_STATUS_BAD_PARAM;
    if (!bind(operation.out)) return CUDNN_STATUS_BAD_PARAM;
  }
  if (pointers.size() + numbers.size() != given.size() || !workspace) return CUDNN_STATUS_BAD_PARAM;  // unknown ids
  auto const status = queue(handle.stream, [=, graph = plan.graph, engine = plan.engine]() mutable {
    std::memset(workspace, 0xff, CudnnBackend::workspace);
    if (engine != engine_usable)
      for (auto& [id, number] : numbers) number = std::numeric_limits<float>::quiet_NaN();
    CudnnGraphRun run(pointers, numbers);
    for (auto const& operation : *graph) run.run(operation);
  });
  return status == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

}  // namespace cuda_emulation

inline std::size_t cudnnGetVersion() { return 91900; }
inline void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (size > 0) *message = '\0';
}
inline cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  return *made = new cuda_emulation::CudnnBackend(type), CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return delete &cuda_emulation::backend(descriptor), CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, std::int64_t count,
                                              void const* values) {
  auto& d = cuda_emulation::backend(descriptor);
  if (d.finalized || count < 1) return CUDNN_STATUS_BAD_PARAM;
  auto const* const bytes = static_cast<std::byte const*>(values);
  d.attributes[name] = {type, count, {bytes, bytes + static_cast<std::size_t>(count) * d.bytes_of(type)}};
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  auto& d = cuda_emulation::backend(descriptor);
  try {
    cuda_emulation::finalize(d);
  } catch (std::out_of_range const&) {  // an attribute is missing, or wrong
    return CUDNN_STATUS_BAD_PARAM;
  }
  bool const refused = d.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && cuda_emulation::cudnn_refuses_graphs;
  bool const failed =
      d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && d.engine == cuda_emulation::engine_uncompilable;
  return refused || failed ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t, std::int64_t wanted, std::int64_t* count,
                                              void* values) {
  auto& d = cuda_emulation::backend(descriptor);
  auto const give = [&](cudnnBackendDescriptor_t to, int engine) {
    auto& filled = cuda_emulation::backend(to);
    filled.graph = d.graph;
    filled.engine = engine;
    filled.finalized = true;
  };
  if (!d.finalized) return CUDNN_STATUS_BAD_PARAM;
  auto* const descriptors = static_cast<cudnnBackendDescriptor_t*>(values);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    std::int64_t const all = cuda_emulation::engines;
    *count = wanted == 0 ? all : std::min(wanted, all);
    for (int i = 0; i < std::min(wanted, all); ++i) give(descriptors[i], i);
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    *count = 1;
    give(descriptors[0], d.engine);
  } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    auto* const notes = static_cast<cudnnBackendNumericalNote_t*>(values);
    notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    notes[1] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    *count = d.engine == cuda_emulation::engine_out_of_order ? 2 : 1;
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    *count = 1;
    *static_cast<std::int64_t*>(values) =
        d.engine == cuda_emulation::engine_greedy ? std::int64_t{1} << 40 : cuda_emulation::CudnnBackend::workspace;
  } else {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack) {
  auto const &p = cuda_emulation::backend(plan), &v = cuda_emulation::backend(pack);
  if (!handle->is_current() || !p.finalized || !v.finalized) return CUDNN_STATUS_BAD_PARAM;
  try {
    return cuda_emulation::execute(*handle, p, v);
  } catch (std::out_of_range const&) {  // a tensor has no memory
    return CUDNN_STATUS_BAD_PARAM;
  }
}
