// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_CUDNN)
#include <cudnn.h>

#include <string>
#include <utility>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns a remedy after a semicolon if libcudnn.so.9 did not find the libraries that it loads when they are needed.
[[nodiscard]] inline std::string cudnn_remedy(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED && status != CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH) return "";
  return "; libcudnn.so.9 needs the libraries libcudnn_*.so.9 of its own version: name their folder in LD_LIBRARY_PATH";
}
/// @throws CudaError
inline void check_cudnn(cudnnStatus_t status, char const* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw CudaError(std::string(call) + ": " + cudnnGetErrorString(status) + cudnn_remedy(status));
}

/// Owns an object of cuDNN, with the functions that create and destroy it.
template <class Scalar, cudnnStatus_t (*create)(Scalar*), cudnnStatus_t (*destroy)(Scalar)>
class CudnnOwned {
 public:
  CudnnOwned() { check_cudnn(create(&owned_), "Convolution: cuDNN could not create a descriptor"); }
  ~CudnnOwned() {
    if (owned_) destroy(owned_);
  }
  CudnnOwned(CudnnOwned&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
  CudnnOwned& operator=(CudnnOwned&& other) noexcept {
    std::swap(owned_, other.owned_);
    return *this;
  }
  [[nodiscard]] Scalar get() const noexcept { return owned_; }

 private:
  Scalar owned_ = nullptr;
};

using CudnnHandle = CudnnOwned<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using CudnnTensor = CudnnOwned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using CudnnFilter = CudnnOwned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using CudnnGeometry =
    CudnnOwned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor>;

}}}  // namespace lockstep::kernel::detail
#endif
