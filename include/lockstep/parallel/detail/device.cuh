// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/kernel/add.cuh>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/cuda_inbox.cuh>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/parallel/detail/device.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

template <>
struct DevicesOf<CudaSpace> {
  /// At least 1.
  /// @throws CudaError with the driver's reason when there is none
  [[nodiscard]] static int count() {
    int devices = 0;
    memory::check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (devices == 0) throw CudaError("cudaGetDeviceCount: there is no GPU that this process may use");
    return devices;
  }
};

namespace detail {

/// For `moved(prediction, move)`: queues the copy of one tensor at a time, which can be read once the stream was waited
/// for.
class ToHost {
 public:
  using Space = HostSpace;
  ToHost(memory::Stream<CudaSpace> stream, memory::Scratch<>& memory) noexcept : stream_(stream), memory_(&memory) {}

  template <class T, int Rank>
  [[nodiscard]] TensorView<T, Rank, HostSpace> operator()(TensorView<T, Rank, CudaSpace> from) const {
    if (!from.data) return {nullptr, from.extent};
    auto* const to = memory_->take_elements<std::remove_const_t<T>>(from.size());
    if (from.size() > 0)
      memory::check_cuda(cudaMemcpyAsync(to, from.data, static_cast<std::size_t>(from.size()) * sizeof(T),
                                         cudaMemcpyDeviceToHost, stream_.get()),
                         "cudaMemcpyAsync");
    return {to, from.extent};
  }

 private:
  memory::Stream<CudaSpace> stream_;
  memory::Scratch<>* memory_;
};

template <class T>
concept MovesToDevice = requires(T const& x, memory::CudaInbox::Copy const& copy) {
  moved(x, copy);
};
template <class T>
concept MovesToHost = requires(T const& x, ToHost const& copy) {
  moved(x, copy);
};

template <class Batch>
struct BroughtToDevice {
  static_assert(MovesToDevice<Batch>,
                "Lockstep: this batch cannot be brought to a GPU: its type has no moved(batch, move) beside it that "
                "makes the same batch of what `move` gives for each TensorView; see docs/reference/cuda.md");
  using type = decltype(moved(std::declval<Batch const&>(), std::declval<memory::CudaInbox::Copy const&>()));
};

/// A stream on a GPU, memory for one batch, and the loss on the device, which nobody waits for before the step is done.
template <>
class Device<CudaSpace> {
 public:
  using Loss = nn::Loss<CudaSpace>;
  template <class Batch>
  using Brought = typename BroughtToDevice<Batch>::type;

  explicit Device(Place const& place) : gpu_(entered(place.gpu)) {}

  [[nodiscard]] memory::Stream<CudaSpace> stream() const noexcept { return stream_.view(); }
  [[nodiscard]] int gpu() const noexcept { return gpu_; }
  void enter() const { entered(gpu_); }

  template <class Batch>
  [[nodiscard]] Brought<Batch> bring(Batch const& batch) {
    auto const brought = inbox_.receive([&](memory::CudaInbox::Copy const& copy) { return moved(batch, copy); });
    inbox_.open(stream());
    return brought;
  }
  /// Waits until the batch that was brought is free on the host.
  void release() const { inbox_.wait(); }
  /// Waits for the device; lives until the next call.
  template <class Prediction>
  [[nodiscard]] auto show(Prediction const& prediction) {
    static_assert(MovesToHost<Prediction>,
                  "Lockstep: metrics look at predictions on the host, and what this model predicts has no "
                  "moved(prediction, move) beside it; see docs/reference/cuda.md");
    shown_.rewind();
    auto const shown = moved(prediction, ToHost(stream(), shown_));
    stream().synchronize();
    return shown;
  }
  void write(std::span<float const> from, float* to) const {
    copy(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice);
    stream().synchronize();
  }
  void read(float const* from, std::span<float> to) const {
    copy(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost);
    stream().synchronize();
  }
  void zero(float* to, Index count) const {
    if (count > 0)
      memory::check_cuda(cudaMemsetAsync(to, 0, static_cast<std::size_t>(count) * sizeof(float), stream().get()),
                         "cudaMemsetAsync");
  }

  void clear_loss() const {
    memory::check_cuda(cudaMemsetAsync(totals_.data(), 0, 2 * sizeof(double), stream().get()), "cudaMemsetAsync");
  }
  void add_loss(Loss const& loss) const {
    kernel::Add<CudaSpace>::backward<double>(stream(), {loss.totals, {2}}, {totals_.data(), {2}}, Write::add);
  }
  [[nodiscard]] Loss const& loss() const noexcept { return loss_; }
  [[nodiscard]] nn::Loss<HostSpace> read(Loss const& loss) const {
    auto* const to = on_host(0);
    copy(to, loss.totals, 2 * sizeof(double), cudaMemcpyDeviceToHost);
    stream().synchronize();
    return {to[0], to[1]};
  }
  /// What was added up elsewhere becomes this device's loss. The one before has been read.
  [[nodiscard]] Loss const& write(nn::Loss<HostSpace> const& loss) const {
    auto* const from = on_host(2);
    from[0] = loss.sum, from[1] = loss.weight;
    copy(totals_.data(), from, 2 * sizeof(double), cudaMemcpyHostToDevice);
    return loss_;
  }

 private:
  static int entered(int gpu) {
    memory::check_cuda(cudaSetDevice(gpu), ("cudaSetDevice(" + std::to_string(gpu) + ")").c_str());
    return gpu;
  }
  void copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) const {
    if (bytes > 0) memory::check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream().get()), "cudaMemcpyAsync");
  }
  [[nodiscard]] double* on_host(int at) const noexcept { return reinterpret_cast<double*>(pinned_.data()) + at; }

  int gpu_;
  memory::Scratch<> shown_;
  memory::Buffer<double, CudaSpace> totals_{2, memory::CudaResource{}};  // loss and weight of the step
  memory::Block pinned_ = memory::PinnedResource{}.allocate(4 * sizeof(double));
  memory::CudaStream stream_;
  memory::CudaInbox inbox_;
  Loss loss_{totals_.data(), nullptr, nullptr};
};

}  // namespace detail
}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
