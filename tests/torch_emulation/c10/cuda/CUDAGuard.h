// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/cuda/CUDAStream.h>

#include <utility>

namespace c10::cuda {

class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(CUDAStream stream) : before_(std::exchange(current_stream, stream)) {
    cudaStreamSynchronize(stream.stream);
  }
  ~CUDAStreamGuard() { current_stream = before_; }
  CUDAStreamGuard(CUDAStreamGuard const&) = delete;
  CUDAStreamGuard& operator=(CUDAStreamGuard const&) = delete;

 private:
  CUDAStream before_;
};

}  // namespace c10::cuda
