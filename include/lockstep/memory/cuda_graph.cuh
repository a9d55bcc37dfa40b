// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Returns whether work queued on the stream is recorded instead of run.
[[nodiscard]] inline bool is_capturing(Stream<CudaSpace> stream) {
  cudaStreamCaptureStatus status{};
  check_cuda(cudaStreamIsCapturing(stream.get(), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// Work of a stream, recorded once and run again by one call, for any number of kernels. Arguments keep their recorded
/// values; values that change must be read from device memory.
class [[nodiscard]] CudaGraph {
 public:
  CudaGraph() = default;
  /// Records the work that f queues on the stream, without running it. During the call, the thread must not wait for a
  /// device, allocate or release its memory, or copy from or to pageable memory.
  /// @throws CudaError if it does; exceptions of f
  template <class Function>
  CudaGraph(Stream<CudaSpace> stream, Function&& f) {
    check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    Capture capture{stream.get()};
    std::forward<Function>(f)();
    check_cuda(capture.end(), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&executable_, capture.graph, 0), "cudaGraphInstantiate");
  }
  /// Takes over the graph.
  CudaGraph(CudaGraph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  /// Exchanges the graphs of both.
  CudaGraph& operator=(CudaGraph&& other) noexcept {
    std::swap(executable_, other.executable_);
    return *this;
  }
  ~CudaGraph() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }

  /// Returns whether it holds captured work.
  [[nodiscard]] explicit operator bool() const noexcept { return executable_ != nullptr; }
  /// Copies the recording to the device, so that its first launch takes no longer than others.
  void upload(Stream<CudaSpace> stream) const {
    check_cuda(cudaGraphUpload(executable_, stream.get()), "cudaGraphUpload");
  }
  /// Queues the recorded work.
  void launch(Stream<CudaSpace> stream) const {
    check_cuda(cudaGraphLaunch(executable_, stream.get()), "cudaGraphLaunch");
  }

 private:
  struct Capture {
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    bool ended = false;

    cudaError_t end() noexcept {
      ended = true;
      return cudaStreamEndCapture(stream, &graph);
    }
    ~Capture() {
      if (!ended && end() != cudaSuccess) static_cast<void>(cudaGetLastError());
      if (graph) cudaGraphDestroy(graph);
    }
  };

  cudaGraphExec_t executable_ = nullptr;
};

}}}  // namespace lockstep::memory
