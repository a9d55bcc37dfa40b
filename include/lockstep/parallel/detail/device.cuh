// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/free_memory.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/kernel/attention/attention.cuh>
#include <lockstep/kernel/elementwise/binary_operation.cuh>
#include <lockstep/kernel/gemm/gemm.cuh>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/cuda_graph_cache.cuh>
#include <lockstep/memory/cuda_prefetcher.cuh>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/device_clock.cuh>
#include <lockstep/parallel/detail/device_load.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

template <>
struct DevicesOf<CudaSpace> {
  /// Returns the number of GPUs, at least 1.
  /// @throws CudaError with the driver's reason if there is none
  [[nodiscard]] static int count() {
    int devices = 0;
    memory::check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (devices == 0) throw CudaError("cudaGetDeviceCount: there is no GPU that this process may use");
    return devices;
  }
  /// Returns whether the program is linked with lockstep::cudnn.
  [[nodiscard]] static bool have_cudnn() noexcept { return kernel::Attention<CudaSpace>::cudnn_version() > 0; }
};

namespace detail {

/// Copies tensors to the host for `copied(prediction, copy)`. The copies are valid once the stream is synchronized.
class CopyToHost {
 public:
  using Space = HostSpace;
  CopyToHost(memory::Stream<CudaSpace> stream, memory::Scratch<>& memory) noexcept
      : stream_(stream), memory_(&memory) {}

  template <class Value, int Rank>
  [[nodiscard]] TensorView<Value, Rank, HostSpace> operator()(TensorView<Value, Rank, CudaSpace> from) const {
    if (!from.data) return {nullptr, from.extent};
    auto* const to = memory_->take_elements<std::remove_const_t<Value>>(from.size());
    if (from.size() > 0)
      memory::check_cuda(cudaMemcpyAsync(to, from.data, static_cast<std::size_t>(from.size()) * sizeof(Value),
                                         cudaMemcpyDeviceToHost, stream_.get()),
                         "cudaMemcpyAsync");
    return {to, from.extent};
  }

 private:
  memory::Stream<CudaSpace> stream_;
  memory::Scratch<>* memory_;
};

template <class Value, class Copy>
concept HasCopied = requires(Value const& x, Copy const& copy) {
  copied(x, copy);
};
/// A type whose namespace has the function by its former name.
template <class Value, class Copy>
concept HasMoved = requires(Value const& x, Copy const& copy) {
  moved(x, copy);
};
template <class Value>
concept CopiesToDevice =
    HasCopied<Value, memory::CudaPrefetcher::Copy> || HasMoved<Value, memory::CudaPrefetcher::Copy>;
template <class Value>
concept CopiesToHost = HasCopied<Value, CopyToHost> || HasMoved<Value, CopyToHost>;

/// Returns a batch or prediction with the result of `copy` for each TensorView.
template <class Value, class Copy>
[[nodiscard]] auto copy_tensors(Value const& x, Copy const& copy) {
  if constexpr (HasCopied<Value, Copy>)
    return copied(x, copy);
  else
    return moved(x, copy);
}

template <class Batch>
struct DeviceBatchOf {
  static_assert(CopiesToDevice<Batch>,
                "Lockstep: this batch cannot be copied to a GPU: its namespace has no copied(batch, copy) that "
                "makes the same batch from the result of `copy` for each TensorView; see docs/reference/cuda.md");
  using type =
      decltype(copy_tensors(std::declval<Batch const&>(), std::declval<memory::CudaPrefetcher::Copy const&>()));
};

/// A stream on a GPU, memory for one batch, and the loss on the device. The host waits for the loss only at the step's
/// end.
template <>
class Device<CudaSpace> {
 public:
  using Loss = nn::Loss<CudaSpace>;
  template <class Batch>
  using DeviceBatch = typename DeviceBatchOf<Batch>::type;

  explicit Device(Place const& place)
      : gpu_(entered(place.gpu)), matmul_precision_(place.matmul_precision), attention_(place.attention) {
    if (place.matmul_precision == MatmulPrecision::tf32) kernel::Gemm<CudaSpace>::allow_tf32(stream(), true);
    if (place.attention == AttentionKernels::cudnn) kernel::Attention<CudaSpace>::use_cudnn(stream(), true);
  }

  [[nodiscard]] memory::Stream<CudaSpace> stream() const noexcept { return stream_.view(); }
  [[nodiscard]] int gpu() const noexcept { return gpu_; }
  void enter() const { entered(gpu_); }

  /// Enters a GPU and returns its free memory.
  [[nodiscard]] static FreeMemory free_memory(int gpu) {
    FreeMemory memory;
    entered(gpu);
    memory::check_cuda(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes), "cudaMemGetInfo");
    return memory;
  }
  /// Returns the host memory for batches, for the GPU that this thread has entered.
  [[nodiscard]] static memory::AnyHostResource batch_memory() { return memory::PinnedResource(); }
  /// Starts to copy a batch, which must not change until `copy_to_device` and `release`.
  template <class Batch>
  void prefetch(Batch const& batch) {
    auto& prefetched = stream().template persistent<Prefetched<Batch>>();
    prefetched.device_batch = receive(batch);
    prefetched.from = &batch;
    prefetched.number = received_;
  }
  /// Discards the batch that was prefetched last, and waits until it is free on the host.
  void cancel_prefetch() noexcept {
    ++received_;
    prefetcher_.wait();
  }
  /// Returns the batch on the device for work that is queued afterwards. Copies it now unless it was prefetched before.
  template <class Batch>
  [[nodiscard]] DeviceBatch<Batch> copy_to_device(Batch const& batch) {
    auto& prefetched = stream().template persistent<Prefetched<Batch>>();
    bool const is_prefetched = std::exchange(prefetched.from, nullptr) == &batch && prefetched.number == received_;
    auto const device_batch = is_prefetched ? *prefetched.device_batch : receive(batch);
    prefetcher_.activate(stream());
    return device_batch;
  }
  /// Waits until the host's copy of the batch is free.
  void release() const noexcept { prefetcher_.wait(); }
  /// Runs a pass as a recording, from the second pass over an equal batch at the same address; needs batches that can
  /// be compared. Returns false if nothing was done. Sets `ready`, if not null, to the parameters that the pass
  /// reported during recording.
  template <class Context, class Batch, class Pass>
  bool run_recorded(Context& context, Batch const& batch, ReadyParameters* ready, Pass const& pass) {
    if constexpr (std::equality_comparable<Batch>) {
      auto const& start = start_of(context, batch, ready);
      auto const* const outcome = stream().template persistent<Passes<Batch>>().run(
          stream(), start, nn::Pass(context).memory_version() + stream().memory_version(),
          recorded(context, ready, pass));
      if (outcome) {
        stream().queued() += outcome->work;
        context.parameters().gradients().set_written(outcome->written);
        if (ready) *ready = outcome->ready;
        return true;
      }
      nn::Pass(context).restart_micro_batch();  // a pass that could not be recorded has changed the context
      context.parameters().gradients().set_written(start.written);
    }
    return false;
  }
  /// Number of addresses that batches of one shape have in turns, and of passes whose recordings are kept.
  static constexpr std::size_t batch_addresses = memory::CudaPrefetcher::slots;
  static constexpr std::size_t max_recordings = memory::max_recordings;
  /// Records a pass without running it. `run_recorded` then runs it for equal arguments from the first pass on. Returns
  /// false if the pass cannot be recorded.
  template <class Context, class Batch, class Pass>
  [[nodiscard]] bool prepare_recording(Context& context, Batch const& batch, ReadyParameters* ready, Pass const& pass) {
    if constexpr (std::equality_comparable<Batch>) {
      auto const& start = start_of(context, batch, ready);
      auto const* const outcome = stream().template persistent<Passes<Batch>>().prepare(
          stream(), start, nn::Pass(context).memory_version() + stream().memory_version(),
          recorded(context, ready, pass));
      if (outcome) context.parameters().gradients().set_written(outcome->written);
      return outcome != nullptr;
    } else {
      return false;
    }
  }
  /// Tunes matrix products, see kernel::Gemm<CudaSpace>.
  [[nodiscard]] std::string choose_gemm_algorithms() const {
    enter();
    return kernel::Gemm<CudaSpace>::choose_by_time(stream());
  }
  void set_gemm_algorithms(std::string const& choices) const {
    enter();
    kernel::Gemm<CudaSpace>::take_choices(stream(), choices);
  }
  /// Returns the prediction on the host, valid until the next call. Waits for the device.
  template <class Prediction>
  [[nodiscard]] auto copy_to_host(Prediction const& prediction) {
    static_assert(CopiesToHost<Prediction>,
                  "Lockstep: metrics read predictions on the host, but the namespace of this model's prediction has no "
                  "copied(prediction, copy); see docs/reference/cuda.md");
    shown_.rewind();
    auto const shown = detail::copy_tensors(prediction, CopyToHost(stream(), shown_));
    stream().synchronize();
    return shown;
  }
  void copy_from_host(void const* from, void* to, std::size_t bytes) const {
    copy(to, from, bytes, cudaMemcpyHostToDevice);
    stream().synchronize();
  }
  void copy_to_host(void const* from, void* to, std::size_t bytes) const {
    copy(to, from, bytes, cudaMemcpyDeviceToHost);
    stream().synchronize();
  }
  void write(std::span<float const> from, float* to) const { copy_from_host(from.data(), to, from.size_bytes()); }
  void read(float const* from, std::span<float> to) const { copy_to_host(from, to.data(), to.size_bytes()); }
  template <class Value>
  void put(Value const& value, Value* to) const {
    copy_from_host(&value, to, sizeof value);
  }
  template <class Value>
  [[nodiscard]] Value get(Value const* from) const {
    Value value;
    copy_to_host(from, &value, sizeof value);
    return value;
  }
  void zero(float* to, Index count) const {
    if (count > 0)
      memory::check_cuda(cudaMemsetAsync(to, 0, static_cast<std::size_t>(count) * sizeof(float), stream().get()),
                         "cudaMemsetAsync");
  }

  /// A point in the stream's work that other streams can wait for. In a recording it applies to each replay.
  using Event = memory::CudaEvent;
  [[nodiscard]] bool is_recorded() const { return memory::is_capturing(stream()); }
  /// @throws CudaError during a recording, which then ends; the pass runs without a recording
  void expect_not_recorded(char const* what) const {
    if (is_recorded()) throw CudaError(std::string(what) + " cannot be recorded");
  }
  /// Waits until the device reaches the event, and calls `poll` repeatedly.
  template <class Poll>
  static void await(Event const& event, Poll const& poll) {
    for (Backoff backoff; !event.reached(); poll())
      if (!backoff.pause()) ::usleep(20);
  }
  void record(Event& event) const {
    if (is_recorded())
      event.record_external(stream());
    else
      event.record(stream());
  }

  using TimePoint = std::size_t;
  [[nodiscard]] TimePoint now() {
    enter();
    return clock_.now(stream());
  }
  void add_phase(double PhaseSeconds::*phase, TimePoint begin, TimePoint end) { clock_.add_phase(phase, begin, end); }
  /// Also records phases in `timeline`; null ends it. Waits for the device.
  void trace(Timeline* timeline) {
    enter();
    clock_.trace(stream(), timeline);
  }
  [[nodiscard]] PhaseSeconds take_phases() { return clock_.take(); }
  /// Counts and measures the passes between these calls. `measures` is false if a pass must not be delayed.
  void begin_pass(bool measures) { load_.begin(stream(), measures); }
  void end_pass(TimePoint begin, TimePoint end, bool replayed) { load_.end(stream(), clock_, begin, end, replayed); }
  /// Returns the work of the passes since the last call. Waits for the device.
  /// @param pass_bytes estimated memory traffic of a pass
  [[nodiscard]] DeviceWork take_work(double pass_bytes) {
    enter();
    clock_.read_times();
    return load_.take(pass_bytes);
  }

  /// Returns the GPU's name, the versions of its libraries, and the kernels that computed.
  [[nodiscard]] DeviceFacts facts() const {
    enter();
    DeviceFacts facts{.matmul_precision = name(matmul_precision_), .attention_kernels = name(attention_)};
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, gpu_) == cudaSuccess)
      facts.name = properties.name;
    else
      static_cast<void>(cudaGetLastError());  // the name stays unknown
    int driver = 0, runtime = 0, major = 0, minor = 0;
    memory::check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu_),
                       "cudaDeviceGetAttribute");
    memory::check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu_),
                       "cudaDeviceGetAttribute");
    facts.compute_capability = std::to_string(major) + "." + std::to_string(minor);
    memory::check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    memory::check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    facts.libraries = {{"driver", memory::cuda_version(driver)},
                       {"cuda", memory::cuda_version(runtime)},
                       {"cublaslt", version_text(kernel::Gemm<CudaSpace>::library_version())}};
    if (auto const cudnn = kernel::Attention<CudaSpace>::cudnn_version(); cudnn > 0)
      facts.libraries.emplace_back("cudnn", version_text(cudnn));
    auto const passes = kernel::Attention<CudaSpace>::passes(stream());
    facts.attention_by_cudnn = passes.by_cudnn;
    facts.attention_not_by_cudnn = passes.not_by_cudnn;
    facts.attention_reason = passes.reason;
    return facts;
  }

  void begin_step() {
    if (clock_.is_full()) clock_.read_times();
    memory::check_cuda(cudaMemsetAsync(totals_.data(), 0, 2 * sizeof(double), stream().get()), "cudaMemsetAsync");
  }
  void add_loss(Loss const& loss) const {
    kernel::BinaryOperation<CudaSpace>::backward<kernel::FirstOperand, double>(stream(), {loss.totals, {2}}, {},
                                                                               {totals_.data(), {2}}, Write::add);
  }
  template <class Function>
  void change_loss(Function const& f) {
    f(totals_.data());
  }
  [[nodiscard]] Loss const& loss() const noexcept { return loss_; }
  [[nodiscard]] nn::Loss<HostSpace> read(Loss const& loss) {
    begin_read(loss);
    stream().synchronize();
    clock_.read_times();
    return end_read();
  }
  /// Reads the loss in two halves. The second waits only for the first, not for work that is queued in between.
  void begin_read(Loss const& loss) {
    copy(on_host(0), loss.totals, 2 * sizeof(double), cudaMemcpyDeviceToHost);
    read_.record(stream());
  }
  [[nodiscard]] nn::Loss<HostSpace> end_read() const {
    memory::wait_for(read_);
    return {on_host(0)[0], on_host(0)[1]};
  }
  /// Returns the loss that is summed over all devices, in memory separate from this device's loss.
  [[nodiscard]] Loss const& summed() const noexcept { return summed_; }
  /// Initializes the summed loss with this device's loss of the work queued so far.
  void begin_sum() const { copy(summed_.totals, loss_.totals, 2 * sizeof(double), cudaMemcpyDeviceToDevice); }
  /// Sets the summed loss to a sum from the host. The previous sum must have been read.
  [[nodiscard]] Loss const& write_sum(nn::Loss<HostSpace> const& loss) const {
    auto* const from = on_host(2);
    from[0] = loss.sum;
    from[1] = loss.weight;
    copy(summed_.totals, from, 2 * sizeof(double), cudaMemcpyHostToDevice);
    return summed_;
  }

 private:
  template <class Batch>
  struct Prefetched {
    Batch const* from = nullptr;
    std::uint64_t number = 0;
    std::optional<DeviceBatch<Batch>> device_batch;
  };
  /// State on which a pass depends, except the contents of device memory, and the gradients that are written before it.
  template <class Batch>
  struct PassStart {
    std::optional<Batch> batch;
    std::vector<std::uint8_t> written;
    bool reports_ready = false;
    bool operator==(PassStart const&) const = default;
  };
  struct PassOutcome {
    std::vector<std::uint8_t> written;
    ReadyParameters ready;
    memory::QueuedWork work;
  };
  template <class Batch>
  using Passes = memory::CudaGraphCache<PassStart<Batch>, PassOutcome>;

  /// Returns the start of a pass over the batch, valid until the next call.
  template <class Context, class Batch>
  [[nodiscard]] PassStart<Batch> const& start_of(Context const& context, Batch const& batch,
                                                 ReadyParameters const* ready) const {
    auto& start = stream().template persistent<PassStart<Batch>>();
    auto const written = context.parameters().gradients().written();
    start.batch = batch;
    start.reports_ready = ready != nullptr;
    start.written.assign(written.begin(), written.end());
    return start;
  }
  /// Returns a function that runs the pass while it is recorded and returns its outcome.
  template <class Context, class Pass>
  [[nodiscard]] auto recorded(Context const& context, ReadyParameters const* ready, Pass const& pass) const {
    return [this, &context, ready, &pass] {
      auto const before = stream().queued();
      pass();
      auto const after = std::exchange(stream().queued(), before);  // replays count it
      auto const written = context.parameters().gradients().written();
      return PassOutcome{{written.begin(), written.end()}, ready ? *ready : ReadyParameters(), after.since(before)};
    };
  }

  template <class Batch>
  [[nodiscard]] DeviceBatch<Batch> receive(Batch const& batch) {
    ++received_;
    return prefetcher_.prefetch(
        [&](memory::CudaPrefetcher::Copy const& copy) { return detail::copy_tensors(batch, copy); });
  }
  static int entered(int gpu) {
    memory::check_cuda(cudaSetDevice(gpu), ("cudaSetDevice(" + std::to_string(gpu) + ")").c_str());
    return gpu;
  }
  void copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) const {
    if (bytes > 0) memory::check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream().get()), "cudaMemcpyAsync");
  }
  [[nodiscard]] double* on_host(int at) const noexcept { return reinterpret_cast<double*>(pinned_.data()) + at; }

  int gpu_;
  MatmulPrecision matmul_precision_;
  AttentionKernels attention_;
  memory::Scratch<> shown_;
  memory::Buffer<double, CudaSpace> totals_{4, memory::CudaResource{}};  // own and summed loss, with their weights
  memory::Block pinned_ = memory::PinnedResource{}.allocate(4 * sizeof(double));
  memory::CudaStream stream_;
  memory::CudaPrefetcher prefetcher_;
  memory::CudaEvent read_;
  DeviceClock clock_;
  DeviceLoad load_;
  std::uint64_t received_ = 0;
  Loss loss_{totals_.data(), nullptr, nullptr}, summed_{totals_.data() + 2, nullptr, nullptr};
};
static_assert(DeviceWithMemory<Device<CudaSpace>>);

}  // namespace detail
}}}  // namespace lockstep::parallel
