// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_CUDNN)
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution/detail/convolution_pass.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/descriptor_cudnn.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// A pass of a convolution of float in cuDNN, channels last, with an algorithm. The algorithm is the first in the
/// ranking of cuDNN's heuristics that is deterministic, computes in float instead of TF32, and needs at most
/// `max_workspace`.
class CudnnPlan {
 public:
  static constexpr std::size_t max_workspace = std::size_t{256} << 20;

  /// @throws CudaError if cuDNN fails; having no such algorithm is not a failure
  CudnnPlan(cudnnHandle_t handle, ConvolutionShape const& shape, ConvolutionPass pass) : shape_(shape), pass_(pass) {
    if (!fits(shape)) return;
    describe();
    if (pass == ConvolutionPass::forward) {
      choose<cudnnConvolutionFwdAlgoPerf_t>(
          [&](int maximum, int* count, auto* found) {
            return cudnnGetConvolutionForwardAlgorithm_v7(handle, x(), weight(), geometry(), y(), maximum, count,
                                                          found);
          },
          [&](auto algorithm, std::size_t* bytes) {
            return cudnnGetConvolutionForwardWorkspaceSize(handle, x(), weight(), geometry(), y(), algorithm, bytes);
          });
    } else if (pass == ConvolutionPass::data) {
      choose<cudnnConvolutionBwdDataAlgoPerf_t>(
          [&](int maximum, int* count, auto* found) {
            return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, weight(), y(), geometry(), x(), maximum, count,
                                                               found);
          },
          [&](auto algorithm, std::size_t* bytes) {
            return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, weight(), y(), geometry(), x(), algorithm,
                                                                bytes);
          });
    } else {
      choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
          [&](int maximum, int* count, auto* found) {
            return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x(), y(), geometry(), weight(), maximum, count,
                                                                 found);
          },
          [&](auto algorithm, std::size_t* bytes) {
            return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x(), y(), geometry(), weight(), algorithm,
                                                                  bytes);
          });
    }
  }

  [[nodiscard]] bool is(ConvolutionShape const& shape, ConvolutionPass pass) const noexcept {
    return pass_ == pass && shape_ == shape;
  }
  [[nodiscard]] bool has_algorithm() const noexcept { return algorithm_ >= 0; }
  /// Returns the algorithm in the pass's own enumeration.
  template <class Algorithm>
  [[nodiscard]] Algorithm algorithm() const noexcept {
    return static_cast<Algorithm>(algorithm_);
  }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_; }
  [[nodiscard]] cudnnTensorDescriptor_t x() const noexcept { return x_.get(); }
  [[nodiscard]] cudnnTensorDescriptor_t y() const noexcept { return y_.get(); }
  [[nodiscard]] cudnnFilterDescriptor_t weight() const noexcept { return weight_.get(); }
  [[nodiscard]] cudnnConvolutionDescriptor_t geometry() const noexcept { return geometry_.get(); }

  /// Returns whether the pass was queued. If cuDNN does not support it after all, the plan has no algorithm from then
  /// on.
  /// @throws CudaError, which names the shape, if it fails otherwise
  [[nodiscard]] bool runs(cudnnStatus_t status, char const* call) {
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) {
      algorithm_ = -1;
      return false;
    }
    check(status, call);
    return true;
  }
  /// @throws CudaError, which names the shape
  void check(cudnnStatus_t status, char const* call) const {
    if (status == CUDNN_STATUS_SUCCESS) return;
    throw CudaError("Convolution: " + std::string(call) + " refuses " + std::to_string(shape_.rows) + " samples, " +
                    std::to_string(shape_.inputs) + " to " + std::to_string(shape_.outputs) + " channels in " +
                    std::to_string(shape_.groups) + " groups, extent " + to_string(shape_.extent) + ", kernel " +
                    to_string(shape_.kernel) + ", stride " + to_string(shape_.stride) + ", padding " +
                    to_string(shape_.padding) + ", dilation " + to_string(shape_.dilation) + " (" +
                    cudnnGetErrorString(status) + "); built without lockstep::cudnn it is computed without cuDNN" +
                    cudnn_remedy(status));
  }

 private:
  using Sizes = std::array<int, 5>;

  /// Returns whether cuDNN can represent the shape: it counts in int, and pads both sides equally.
  [[nodiscard]] static bool fits(ConvolutionShape const& s) noexcept {
    Index maximum = std::max({s.weight_size(), s.rows * s.input_size(), s.rows * s.output_size()});
    for (std::size_t axis = 0; axis < 3; ++axis)
      maximum = std::max({maximum, s.stride[axis], s.padding[axis], s.dilation[axis]});
    return s.rows > 0 && s.padding == s.padding_after && maximum <= std::numeric_limits<int>::max();
  }
  /// Returns the axes of space: cuDNN supports two or three, and has more algorithms for two.
  [[nodiscard]] std::size_t axes() const noexcept {
    return shape_.extent[0] == 1 && shape_.kernel[0] == 1 && shape_.padding[0] == 0 ? 2 : 3;
  }
  [[nodiscard]] Sizes in_space(Extents<3> const& extent) const noexcept {
    Sizes out{};
    for (std::size_t axis = 0; axis < axes(); ++axis) out[axis] = static_cast<int>(extent[3 - axes() + axis]);
    return out;
  }
  /// Returns the extents in cuDNN's order, in which channels come second for any memory layout.
  [[nodiscard]] Sizes tensor(Index rows, Index channels, Extents<3> const& extent) const noexcept {
    auto const space = in_space(extent);
    return {static_cast<int>(rows), static_cast<int>(channels), space[0], space[1], space[2]};
  }
  void describe() {
    int const dims = static_cast<int>(axes()) + 2;
    auto const x = tensor(shape_.rows, shape_.inputs, shape_.extent);
    auto const y = tensor(shape_.rows, shape_.outputs, shape_.result());
    auto const weight = tensor(shape_.outputs, shape_.group_inputs(), shape_.kernel);
    auto const padding = in_space(shape_.padding), stride = in_space(shape_.stride),
               dilation = in_space(shape_.dilation);
    constexpr auto type = CUDNN_DATA_FLOAT;
    constexpr auto order = CUDNN_TENSOR_NHWC;
    check(cudnnSetTensorNdDescriptorEx(x_.get(), order, type, dims, x.data()), "cudnnSetTensorNdDescriptorEx");
    check(cudnnSetTensorNdDescriptorEx(y_.get(), order, type, dims, y.data()), "cudnnSetTensorNdDescriptorEx");
    check(cudnnSetFilterNdDescriptor(weight_.get(), type, order, dims, weight.data()), "cudnnSetFilterNdDescriptor");
    check(cudnnSetConvolutionNdDescriptor(geometry_.get(), dims - 2, padding.data(), stride.data(), dilation.data(),
                                          CUDNN_CROSS_CORRELATION, type),
          "cudnnSetConvolutionNdDescriptor");
    check(cudnnSetConvolutionGroupCount(geometry_.get(), static_cast<int>(shape_.groups)),
          "cudnnSetConvolutionGroupCount");
    // Only this kind of arithmetic never uses TF32.
    check(cudnnSetConvolutionMathType(geometry_.get(), CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");
  }

  template <class Ranked, class Rank, class Measure>
  void choose(Rank const& rank, Measure const& measure) {
    std::array<Ranked, 16> found{};
    int count = 0;
    auto const status = rank(static_cast<int>(found.size()), &count, found.data());
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ||
        CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_BAD_PARAM)
      return;
    check(status, "cuDNN's choice of an algorithm");
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      if (found[i].status != CUDNN_STATUS_SUCCESS || found[i].determinism != CUDNN_DETERMINISTIC) continue;
      std::size_t bytes = 0;
      if (measure(found[i].algo, &bytes) != CUDNN_STATUS_SUCCESS || bytes > max_workspace) continue;
      algorithm_ = static_cast<int>(found[i].algo);
      workspace_ = bytes;
      return;
    }
  }

  ConvolutionShape shape_;
  ConvolutionPass pass_;
  CudnnTensor x_, y_;
  CudnnFilter weight_;
  CudnnGeometry geometry_;
  int algorithm_ = -1;
  std::size_t workspace_ = 0;
};

}}}  // namespace lockstep::kernel::detail
#endif
