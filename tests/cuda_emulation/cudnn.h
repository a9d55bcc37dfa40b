// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The part of cuDNN that Lockstep uses, on the host: convolutions by definition, of channels-last tensors. The first
/// algorithms that the heuristics rank are not deterministic, use TF32 if it is allowed, or fail and return NaNs. For
/// three axes with a stride on the first, gradients of the input have only such algorithms.
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "cuda_runtime.h"

enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
  CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_NOT_SUPPORTED_SHAPE = 3002,
};
#define CUDNN_STATUS_CATEGORY(full_error_code) ((full_error_code) / 1000 * 1000)
enum cudnnDataType_t {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_BOOLEAN = 11
};
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 };
enum cudnnConvolutionMode_t { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 };
enum cudnnMathType_t { CUDNN_DEFAULT_MATH = 0, CUDNN_TENSOR_OP_MATH = 1, CUDNN_FMA_MATH = 3 };
enum cudnnDeterminism_t { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 };
enum cudnnConvolutionFwdAlgo_t : int { CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1 };
enum cudnnConvolutionBwdDataAlgo_t : int { CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1 };
enum cudnnConvolutionBwdFilterAlgo_t : int { CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1 };

namespace cuda_emulation {

/// Samples and channels, or outputs and inputs, and up to three spatial axes.
using CudnnExtents = std::array<int, 5>;

struct CudnnArray {
  CudnnExtents extent{};
  int dims = 0;

  /// Offset of an element, channels last.
  [[nodiscard]] std::size_t at(int row, int channel, std::array<int, 3> const& place) const {
    std::size_t out = static_cast<std::size_t>(row);
    for (std::size_t axis = 0; axis < 3; ++axis)
      out = out * static_cast<std::size_t>(extent[axis + 2]) + static_cast<std::size_t>(place[axis]);
    return out * static_cast<std::size_t>(extent[1]) + static_cast<std::size_t>(channel);
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t out = 1;
    for (int e : extent) out *= static_cast<std::size_t>(e);
    return out;
  }
};

inline cudnnStatus_t describe(CudnnArray* array, int dims, int const* extent) {
  if (dims < 4 || dims > 5) return CUDNN_STATUS_BAD_PARAM;
  *array = {{1, 1, 1, 1, 1}, dims};
  for (int i = 0; i < dims; ++i) {
    if (extent[i] < 1) return CUDNN_STATUS_BAD_PARAM;
    array->extent[static_cast<std::size_t>(i)] = extent[i];
  }
  return array->size() > std::numeric_limits<int>::max() ? CUDNN_STATUS_NOT_SUPPORTED_SHAPE : CUDNN_STATUS_SUCCESS;
}

}  // namespace cuda_emulation

struct cudnnContext : cuda_emulation::OfDevice {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct : cuda_emulation::CudnnArray {};
struct cudnnFilterStruct : cuda_emulation::CudnnArray {};
struct cudnnConvolutionStruct {
  std::array<int, 3> padding, stride, dilation;
  int axes, groups;
  cudnnMathType_t math;
};
using cudnnHandle_t = cudnnContext*;
using cudnnTensorDescriptor_t = cudnnTensorStruct*;
using cudnnFilterDescriptor_t = cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = cudnnConvolutionStruct*;

inline char const* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
      return "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH";
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
      return "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT:
      return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_NOT_SUPPORTED_SHAPE:
      return "CUDNN_STATUS_NOT_SUPPORTED_SHAPE";
  }
  return "?";
}

/// Handles own device memory, so none is created during a capture.
inline cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (cuda_emulation::spoils_capture()) return CUDNN_STATUS_NOT_SUPPORTED;
  return *handle = new cudnnContext, CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return delete handle, CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  return *made = new cudnnTensorStruct{}, CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t x) { return delete x, CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  return *made = new cudnnFilterStruct{}, CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t x) { return delete x, CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  return *made = new cudnnConvolutionStruct{}, CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t x) {
  return delete x, CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t x, cudnnTensorFormat_t format,
                                                  cudnnDataType_t, int dims, int const* extent) {
  return format == CUDNN_TENSOR_NHWC ? cuda_emulation::describe(x, dims, extent) : CUDNN_STATUS_NOT_SUPPORTED;
}
inline cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t x, cudnnDataType_t, cudnnTensorFormat_t format,
                                                int dims, int const* extent) {
  return format == CUDNN_TENSOR_NHWC ? cuda_emulation::describe(x, dims, extent) : CUDNN_STATUS_NOT_SUPPORTED;
}
/// Missing spatial axes come last here, with extent 1: nothing moves along them.
inline cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int axes, int const* padding,
                                                     int const* stride, int const* dilation,
                                                     cudnnConvolutionMode_t mode, cudnnDataType_t) {
  if (axes < 2 || axes > 3) return CUDNN_STATUS_NOT_SUPPORTED;
  if (mode != CUDNN_CROSS_CORRELATION) return CUDNN_STATUS_NOT_SUPPORTED;
  *c = {{0, 0, 0}, {1, 1, 1}, {1, 1, 1}, axes, 1, CUDNN_DEFAULT_MATH};
  for (int i = 0; i < axes; ++i) {
    if (padding[i] < 0 || stride[i] < 1 || dilation[i] < 1) return CUDNN_STATUS_BAD_PARAM;
    auto const axis = static_cast<std::size_t>(i);
    c->padding[axis] = padding[i];
    c->stride[axis] = stride[i];
    c->dilation[axis] = dilation[i];
  }
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups) {
  if (groups < 1) return CUDNN_STATUS_BAD_PARAM;
  return c->groups = groups, CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math) {
  return c->math = math, CUDNN_STATUS_SUCCESS;
}

namespace cuda_emulation {

enum CudnnAlgorithm { usable = 1, out_of_order, in_tf32, failed, unsupported, greedy };

template <class Algorithm>
struct CudnnRanked {
  Algorithm algo;
  cudnnStatus_t status;
  float time;
  std::size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
};

/// One pass: its descriptors, and its operation for every pair of combined elements.
struct CudnnPass {
  CudnnArray x, y, weight;
  cudnnConvolutionStruct geometry;

  [[nodiscard]] bool is_consistent() const {
    bool same = x.dims == y.dims && x.dims == weight.dims && geometry.axes + 2 == x.dims &&
                x.extent[0] == y.extent[0] && x.extent[1] == geometry.groups * weight.extent[1] &&
                y.extent[1] == weight.extent[0] && y.extent[1] % geometry.groups == 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      int const reach = geometry.dilation[axis] * (weight.extent[axis + 2] - 1) + 1;
      int const room = x.extent[axis + 2] + 2 * geometry.padding[axis] - reach;
      same = same && room >= 0 && y.extent[axis + 2] == room / geometry.stride[axis] + 1;
    }
    return same;
  }
  [[nodiscard]] std::size_t workspace() const { return 4 * static_cast<std::size_t>(x.extent[1]) + 1; }

  template <class F>
  static void places(CudnnArray const& array, F const& f) {
    std::array<int, 3> p{};
    for (p[0] = 0; p[0] < array.extent[2]; ++p[0])
      for (p[1] = 0; p[1] < array.extent[3]; ++p[1])
        for (p[2] = 0; p[2] < array.extent[4]; ++p[2]) f(p);
  }
  /// f(element of x, element of y, element of the weight) for all combinations.
  template <class F>
  void meet(F const& f) const {
    for (int row = 0; row < x.extent[0]; ++row)
      places(y, [&](std::array<int, 3> const& to) {
        places(weight, [&](std::array<int, 3> const& tap) {
          std::array<int, 3> from{};
          for (std::size_t i = 0; i < 3; ++i) {
            from[i] = to[i] * geometry.stride[i] - geometry.padding[i] + tap[i] * geometry.dilation[i];
            if (from[i] < 0 || from[i] >= x.extent[i + 2]) return;
          }
          for (int out = 0; out < y.extent[1]; ++out)
            for (int in = 0; in < weight.extent[1]; ++in) {
              int const group = out / (y.extent[1] / geometry.groups);
              f(x.at(row, group * weight.extent[1] + in, from), y.at(row, out, to), weight.at(out, in, tap));
            }
        });
      });
  }

  template <class Algorithm>
  cudnnStatus_t rank(bool only_out_of_order, int wanted, int* count, CudnnRanked<Algorithm>* found) const {
    if (!is_consistent() || wanted < 6) return CUDNN_STATUS_BAD_PARAM;
    auto const make = [&](CudnnAlgorithm a, cudnnStatus_t status, cudnnDeterminism_t determinism,
                          cudnnMathType_t math) {
      found[(*count)++] = {static_cast<Algorithm>(a), status, 1, workspace(), determinism, math};
    };
    *count = 0;
    make(out_of_order, CUDNN_STATUS_SUCCESS, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH);
    if (only_out_of_order) return CUDNN_STATUS_SUCCESS;
    if (geometry.math != CUDNN_FMA_MATH) make(in_tf32, CUDNN_STATUS_SUCCESS, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH);
    make(failed, CUDNN_STATUS_NOT_SUPPORTED, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH);
    make(unsupported, CUDNN_STATUS_SUCCESS, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH);
    make(greedy, CUDNN_STATUS_SUCCESS, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH);
    make(usable, CUDNN_STATUS_SUCCESS, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH);
    return CUDNN_STATUS_SUCCESS;
  }
  cudnnStatus_t measure(int algorithm, std::size_t* bytes) const {
    if (!is_consistent() || algorithm == unsupported) return CUDNN_STATUS_NOT_SUPPORTED;
    return *bytes = algorithm == greedy ? std::size_t{1} << 31 : workspace(), CUDNN_STATUS_SUCCESS;
  }
  /// to = the sum of f's terms, plus beta times its old value. The factors are read at execution, and the workspace is
  /// written.
  template <class F>
  cudnnStatus_t run(cudnnHandle_t handle, int algorithm, void* space, std::size_t bytes, void const* alpha,
                    void const* beta, CudnnArray const& result, void* to, F const& terms) const {
    if (!handle->is_current() || !is_consistent() || !to || reinterpret_cast<std::uintptr_t>(space) % 16 != 0)
      return CUDNN_STATUS_BAD_PARAM;
    if (bytes < workspace()) return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
    float const by = *static_cast<float const*>(alpha), keep = *static_cast<float const*>(beta);
    auto const status = queue(handle->stream, [=, self = *this] {
      std::memset(space, 0xff, bytes);
      std::vector<float> sum(result.size());
      self.meet([&](std::size_t x_at, std::size_t y_at, std::size_t weight_at) { terms(sum, x_at, y_at, weight_at); });
      auto* const out = static_cast<float*>(to);
      for (std::size_t i = 0; i < sum.size(); ++i) {
        if (algorithm != usable) sum[i] = std::numeric_limits<float>::quiet_NaN();
        out[i] = by * sum[i] + (keep != 0 ? keep * out[i] : 0);
      }
    });
    return status == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
  }
};

}  // namespace cuda_emulation

using cudnnConvolutionFwdAlgoPerf_t = cuda_emulation::CudnnRanked<cudnnConvolutionFwdAlgo_t>;
using cudnnConvolutionBwdDataAlgoPerf_t = cuda_emulation::CudnnRanked<cudnnConvolutionBwdDataAlgo_t>;
using cudnnConvolutionBwdFilterAlgoPerf_t = cuda_emulation::CudnnRanked<cudnnConvolutionBwdFilterAlgo_t>;

inline cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                            cudnnFilterDescriptor_t weight,
                                                            cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y,
                                                            int wanted, int* count,
                                                            cudnnConvolutionFwdAlgoPerf_t* found) {
  return cuda_emulation::CudnnPass{*x, *y, *weight, *c}.rank(false, wanted, count, found);
}
inline cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t weight,
                                                                 cudnnTensorDescriptor_t y,
                                                                 cudnnConvolutionDescriptor_t c,
                                                                 cudnnTensorDescriptor_t x, int wanted, int* count,
                                                                 cudnnConvolutionBwdDataAlgoPerf_t* found) {
  bool const only_out_of_order = c->axes == 3 && c->stride[0] > 1;
  return cuda_emulation::CudnnPass{*x, *y, *weight, *c}.rank(only_out_of_order, wanted, count, found);
}
inline cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
    cudnnFilterDescriptor_t weight, int wanted, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return cuda_emulation::CudnnPass{*x, *y, *weight, *c}.rank(false, wanted, count, found);
}
inline cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                             cudnnFilterDescriptor_t weight,
                                                             cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y,
                                                             cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  return cuda_emulation::CudnnPass{*x, *y, *weight, *c}.measure(algorithm, bytes);
}
inline cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, cudnnFilterDescriptor_t weight, cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
    cudnnTensorDescriptor_t x, cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
  return cuda_emulation::CudnnPass{*x, *y, *weight, *c}.measure(algorithm, bytes);
}
inline cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
    cudnnFilterDescriptor_t weight, cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
  return cuda_emulation::CudnnPass{*x, *y, *weight, *c}.measure(algorithm, bytes);
}

inline cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, void const* alpha, cudnnTensorDescriptor_t x_is,
                                             void const* x, cudnnFilterDescriptor_t weight_is, void const* weight,
                                             cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                             void* space, std::size_t bytes, void const* beta,
                                             cudnnTensorDescriptor_t y_is, void* y) {
  auto const *const a = static_cast<float const*>(x), *const b = static_cast<float const*>(weight);
  return cuda_emulation::CudnnPass{*x_is, *y_is, *weight_is, *c}.run(
      handle, algorithm, space, bytes, alpha, beta, *y_is, y,
      [=](auto& sum, std::size_t x_at, std::size_t y_at, std::size_t weight_at) {
        sum[y_at] += a[x_at] * b[weight_at];
      });
}
inline cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, void const* alpha,
                                                  cudnnFilterDescriptor_t weight_is, void const* weight,
                                                  cudnnTensorDescriptor_t y_is, void const* dy,
                                                  cudnnConvolutionDescriptor_t c,
                                                  cudnnConvolutionBwdDataAlgo_t algorithm, void* space,
                                                  std::size_t bytes, void const* beta, cudnnTensorDescriptor_t x_is,
                                                  void* dx) {
  auto const *const a = static_cast<float const*>(dy), *const b = static_cast<float const*>(weight);
  return cuda_emulation::CudnnPass{*x_is, *y_is, *weight_is, *c}.run(
      handle, algorithm, space, bytes, alpha, beta, *x_is, dx,
      [=](auto& sum, std::size_t x_at, std::size_t y_at, std::size_t weight_at) {
        sum[x_at] += a[y_at] * b[weight_at];
      });
}
inline cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, void const* alpha, cudnnTensorDescriptor_t x_is, void const* x, cudnnTensorDescriptor_t y_is,
    void const* dy, cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t algorithm, void* space,
    std::size_t bytes, void const* beta, cudnnFilterDescriptor_t weight_is, void* dweight) {
  auto const *const a = static_cast<float const*>(x), *const b = static_cast<float const*>(dy);
  return cuda_emulation::CudnnPass{*x_is, *y_is, *weight_is, *c}.run(
      handle, algorithm, space, bytes, alpha, beta, *weight_is, dweight,
      [=](auto& sum, std::size_t x_at, std::size_t y_at, std::size_t weight_at) {
        sum[weight_at] += a[x_at] * b[y_at];
      });
}

#include "cudnn_graph.h"
