// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_NCCL)
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/descriptor.hpp>
#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/comm/engine/any_communicator.hpp>
#include <lockstep/comm/nccl/detail/enqueue_nccl.cuh>
#include <lockstep/comm/nccl/detail/group_nccl.cuh>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/cuda_graph.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// One rank of a group whose device memory NCCL transfers. A host engine connects the same ranks over host memory.
///
/// Every operation on device memory has a header from each rank to all, over the host: its descriptor and its
/// piggybacked doubles. NCCL does not wait for the headers. Ranks detect mismatched operations and missing ranks by
/// them. NCCL would wait for such ranks forever, so it is aborted.
class RankNccl {
 public:
  /// Connects the ranks of a world.   @collective
  RankNccl(launch::World const& world, AnyCommunicator host) : RankNccl(world, std::move(host), GroupNccl()) {
    ::prctl(PR_SET_TIMERSLACK, 1000UL);  // the default timer slack adds 50 us to short waits
    ncclUniqueId id{};
    if (rank() == 0) group_.must(ncclGetUniqueId(&id), "ncclGetUniqueId", watch_, "ncclGetUniqueId");
    host_.broadcast(&id, sizeof id, 0);
    host_.barrier();  // names a rank that does not arrive
    group_ = GroupNccl::join(id, rank(), size(), watch_);
  }
  RankNccl(RankNccl const&) = delete;
  RankNccl& operator=(RankNccl const&) = delete;
  ~RankNccl() { abandon(); }

  [[nodiscard]] int rank() const noexcept { return host_.rank(); }
  [[nodiscard]] int size() const noexcept { return host_.size(); }
  [[nodiscard]] int gpu() const noexcept { return stream_.device(); }
  void follow(memory::Stream<CudaSpace> stream) { followed_stream_ = stream; }

  void start(CollectiveOperation& operation, memory::CudaEvent const* ready = nullptr) {
    check(operation, rank(), size());
    if (operation.collective == Collective::barrier || largest_part(operation) == 0 || !on_device(operation))
      return host_.start(operation);
    operation.started_seconds = Clock::seconds();
    operation.finished_seconds = 0;
    if (failure_) return;
    if (followed_stream_ && !ready && memory::is_capturing(*followed_stream_)) return record(operation);
    push(operation, ready);
    attempt([this] {  // completion is not queried here: that would take longer than everything else in start
      while (enqueue_next()) {
      }
    });
  }

  void progress() {
    host_.progress();
    advance();
  }
  void wait(CollectiveOperation const& operation) {
    bool const is_ours = std::ranges::any_of(steps_, [&](auto const& step) { return step->operation == &operation; });
    if (is_ours || failure_) return wait_until([&] { return operation.complete(); });
    run_on_host([&] { host_.wait(operation); });
  }
  void finish() {
    wait_until([&] { return steps_.empty(); });
    run_on_host([&] { host_.finish(); });
  }

  /// Allocates memory that NCCL reaches from other devices without a copy, if they support it.
  [[nodiscard]] void* allocate(std::size_t bytes, void** registration) {
    finish();
    void* data = nullptr;
    if (auto const status = ncclMemAlloc(&data, bytes); status != ncclSuccess)
      throw CudaError("ncclMemAlloc of " + std::to_string(bytes) + " bytes: " + ncclGetErrorString(status));
    std::unique_ptr<void, decltype(&ncclMemFree)> held(data, &ncclMemFree);
    memory::check_cuda(cudaMemsetAsync(data, 0, bytes, stream_.view().get()), "cudaMemsetAsync");
    stream_.view().synchronize();
    group_.await_result(ncclCommRegister(group_.get(), data, bytes, registration), "ncclCommRegister", watch_);
    blocks_.push_back({static_cast<std::byte*>(data), bytes});
    return held.release();
  }
  /// Frees device memory and abandons incomplete operations: a busy NCCL must not be called. Unlike cudaFree, NCCL
  /// unmaps memory that may be in use, so this waits for all work of the device.
  void free(void* data, void* registration) noexcept {
    if (!steps_.empty()) abandon();
    std::erase_if(blocks_, [data](auto const& block) { return block.data() == data; });
    cudaDeviceSynchronize();
    if (!group_.broken()) ncclCommDeregister(group_.get(), registration);
    ncclMemFree(data);
  }

  /// Aborts incomplete operations. Freeing device memory waits for all work of the device, including NCCL's. Without
  /// the abort, a rank that leaves early could wait for missing peers forever, without an error. Recorded operations
  /// may run at any time, and NCCL does not end before its recordings are destroyed.
  void abandon() noexcept {
    if ((steps_.empty() && !recorded_) || failure_) return;
    failure_ = std::make_exception_ptr(
        CommunicationError(watch_.own_name() + " has left " +
                           (steps_.empty() ? "NCCL's recorded operations" : describe_step(*steps_.front()))));
    group_.abort(recorded_);
  }

  /// Creates the communicator of the ranks with this color.   @collective
  [[nodiscard]] std::unique_ptr<RankNccl> split(int color, int key) {
    if (color < 0)
      throw ConfigError("NcclCommunicator::split: the color is " + std::to_string(color) + "; it needs 0 or more");
    finish();
    auto host = host_.split(color, key);
    GroupNccl group;
    run_on_host([&] { group = group_.split(color, key, watch_); });
    return std::unique_ptr<RankNccl>(new RankNccl(watch_.world(), std::move(host), std::move(group)));
  }

 private:
  struct Header {
    Descriptor descriptor;
    std::array<double, static_cast<std::size_t>(CollectiveOperation::max_piggybacked_scalars)> scalars;
  };
  /// One operation in progress.
  struct Step {
    CollectiveOperation* operation = nullptr;
    std::uint32_t number = 0;
    std::vector<Header> headers;
    CollectiveOperation header_gather;
    memory::CudaEvent input_ready, result_ready;   // input_ready: if a stream is followed
    memory::CudaEvent const* waits_for = nullptr;  // `input_ready`, the caller's event, or null
  };

  RankNccl(launch::World const& world, AnyCommunicator host, GroupNccl group)
      : watch_(world, members(world.rank, host)), host_(std::move(host)), group_(std::move(group)) {
    inputs_.resize(static_cast<std::size_t>(size()));
    load_normalize_kernels();
  }
  static std::vector<int> members(int run_rank, AnyCommunicator& host) {
    std::vector<int> all(static_cast<std::size_t>(host.size()));
    host.all_gather(&run_rank, all.data(), sizeof run_rank);
    return all;
  }

  [[nodiscard]] static bool is_inside(std::span<std::byte> block, void const* data) noexcept {
    return data >= block.data() && data < block.data() + block.size();
  }
  /// Returns whether memory is on the device. Queries CUDA only for memory that is not from `allocate`: the query is
  /// slow.
  [[nodiscard]] bool on_device(void const* data) const {
    if (std::any_of(blocks_.begin(), blocks_.end(), [=](auto const& block) { return is_inside(block, data); }))
      return true;
    cudaPointerAttributes attributes{};
    memory::check_cuda(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
    return attributes.type != cudaMemoryTypeUnregistered && attributes.type != cudaMemoryTypeHost;
  }
  [[nodiscard]] bool on_device(CollectiveOperation const& operation) const {
    bool const device = on_device(operation.data);
    if (auto const* const in = input_of(operation); in && in != operation.data && on_device(in) != device)
      throw ConfigError(
          "NcclCommunicator::start: input and result of an operation must both be on the device, or both on the host");
    return device;
  }

  void push(CollectiveOperation& operation, memory::CudaEvent const* ready) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Step>());
    auto& step = *steps_.emplace_back(std::move(spare_.back()));
    spare_.pop_back();
    set_header(step, operation);
    step.waits_for = ready;
    if (followed_stream_ && !ready) {
      step.input_ready.record(*followed_stream_);
      step.waits_for = &step.input_ready;
    }
    host_.start(step.header_gather);
  }
  void set_header(Step& step, CollectiveOperation& operation) {
    step.operation = &operation;
    step.number = number_++;
    step.headers.resize(static_cast<std::size_t>(size()));
    auto& mine = step.headers[static_cast<std::size_t>(rank())];
    mine.descriptor = descriptor_of(operation, rank());
    std::copy(operation.piggybacked_scalars.begin(), operation.piggybacked_scalars.end(), mine.scalars.begin());
    step.header_gather = {.type = ElementType::uint8,
                          .data = step.headers.data(),
                          .count = sizeof(Header),
                          .collective = Collective::all_gather,
                          .in = &mine};
  }

  /// Captures the operation into the stream's recording. Ranks compare it now: later runs have no comparison.
  void record(CollectiveOperation& operation) {
    if (!operation.piggybacked_scalars.empty())
      throw ConfigError(
          "NcclCommunicator::start: the doubles of `piggybacked_scalars` go over the host, and cannot be recorded with "
          "the operation");
    recorded_ = true;  // from now on aborts use a thread of their own: this one must not wait for the device
    Step step;
    set_header(step, operation);
    host_.start(step.header_gather);
    run_on_host([&] { host_.wait(step.header_gather); });
    attempt([&] {
      throw_if_mismatched(step);
      watch_.wait_until(
          [&] {
            while (enqueue_next()) {
            }
            return enqueued_steps_ == steps_.size();
          },
          [&] { return describe_step(*steps_[enqueued_steps_]); });
      group_.await_result(enqueue_nccl(operation, group_.get(), rank(), size(), *followed_stream_), "NCCL's call",
                          watch_);
      normalize_logical_result(operation, *followed_stream_);
    });
    if (failure_) std::rethrow_exception(failure_);
    operation.finished_seconds = Clock::seconds();
  }

  /// Makes all progress that needs no waiting. Keeps an error for the next wait.
  void advance() {
    attempt([this] {
      while (enqueue_next() || complete_next()) {
      }
    });
  }
  template <class Function>
  void attempt(Function const& f) {
    if (failure_) return;
    try {
      f();
    } catch (CommunicationError const&) {
      give_up();
    } catch (...) {
      give_up();  // the operation may not live on
      throw;
    }
  }
  void give_up() noexcept {
    failure_ = std::current_exception();
    group_.abort(recorded_);
  }

  /// Enqueues one operation after another on NCCL, each once NCCL is no longer busy with the previous one.
  bool enqueue_next() {
    if (enqueued_steps_ == steps_.size()) return false;
    auto& step = *steps_[enqueued_steps_];
    auto const stream = stream_.view();
    if (!enenqueued_steps_) {
      if (step.waits_for) step.waits_for->make_wait(stream);
      group_.must(enqueue_nccl(*step.operation, group_.get(), rank(), size(), stream), "NCCL's call", watch_,
                  describe_step(step));
      enenqueued_steps_ = true;
    }
    auto const state = group_.state();
    if (state == ncclInProgress) return false;
    group_.must(state, "NCCL", watch_, describe_step(step));
    normalize_logical_result(*step.operation, stream);
    step.result_ready.record(stream);
    enenqueued_steps_ = false;
    ++enqueued_steps_;
    return true;
  }

  bool complete_next() {
    if (enqueued_steps_ == 0) return false;
    auto& step = *steps_.front();
    host_.progress();
    if (!step.header_gather.complete()) return false;
    throw_if_mismatched(step);
    if (!step.result_ready.reached()) {
      group_.must(group_.state(), "NCCL", watch_, describe_step(step));  // throws if a peer failed
      return false;
    }
    sum_scalars(step);
    step.operation->finished_seconds = Clock::seconds();
    spare_.push_back(std::move(steps_.front()));
    steps_.erase(steps_.begin());
    --enqueued_steps_;
    return true;
  }

  template <class Condition>
  void wait_until(Condition const& condition) {
    for (;;) {
      advance();
      if (failure_) std::rethrow_exception(failure_);
      if (condition()) return;
      if (steps_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
      auto& step = *steps_.front();
      auto const number = step.number;
      try {
        if (!step.header_gather.complete())
          wait_for_headers(step);
        else
          watch_.wait_until(
              [&] {
                advance();
                return failure_ || steps_.empty() || steps_.front()->number != number;
              },
              [&] { return describe_step(step); });
      } catch (...) {  // also of the function for warnings: the operation may not live on
        give_up();
      }
    }
  }
  /// Waits for the headers over the host engine, which names missing ranks. Adds the NCCL operation to its errors.
  void wait_for_headers(Step& step) {
    auto const because = [&](CommunicationError const& error) {
      return error.what() + (", for " + describe_step(step));
    };
    try {
      host_.wait(step.header_gather);
    } catch (RankLost const& error) {
      throw RankLost(error.rank(), because(error), error.history());
    } catch (RankStalled const& error) {
      throw RankStalled(error.rank(), because(error), error.history());
    } catch (CollectiveMismatch const& error) {
      throw CollectiveMismatch(because(error), error.history());
    }
  }
  template <class Function>
  void run_on_host(Function const& f) {
    try {
      f();
    } catch (CommunicationError const&) {
      give_up();
      throw;
    }
  }

  /// Returns this rank's descriptor, which is valid even if the operation is not any more.
  [[nodiscard]] Descriptor const& own_descriptor(Step const& step) const {
    return step.headers[static_cast<std::size_t>(rank())].descriptor;
  }
  [[nodiscard]] std::string describe_step(Step const& step) const {
    return "NCCL's operation " + std::to_string(step.number) + " (" + describe(own_descriptor(step)) + ")";
  }
  void throw_if_mismatched(Step const& step) const {
    auto const message = mismatch_message(
        "NCCL's operation " + std::to_string(step.number), rank(), size(), own_descriptor(step),
        [&](int r) { return watch_.rank_name(r); },
        [&](int r) { return &step.headers[static_cast<std::size_t>(r)].descriptor; });
    if (!message.empty()) throw CollectiveMismatch(message);
  }
  void sum_scalars(Step& step) {
    if (step.operation->piggybacked_scalars.empty()) return;
    for (std::size_t r = 0; r < inputs_.size(); ++r) inputs_[r] = step.headers[r].scalars.data();
    void* const out = step.operation->piggybacked_scalars.data();
    reduce_range(Reduction::sum, ElementType::float64, inputs_.data(), size(), &out, 1, 0,
                 std::ssize(step.operation->piggybacked_scalars));
  }

  PeerWatch watch_;
  /// NCCL needs few blocks, and all ranks wait for the last one: they start before blocks of queued kernels.
  memory::CudaStream stream_{memory::CudaStream::Priority::highest};
  std::vector<std::unique_ptr<Step>> steps_, spare_;  // in progress, oldest first; for reuse
  std::vector<std::span<std::byte>> blocks_;          // device memory from `allocate`
  AnyCommunicator host_;
  GroupNccl group_;
  std::optional<memory::Stream<CudaSpace>> followed_stream_;
  std::size_t enqueued_steps_ = 0;  // number of steps that are enqueued on the stream
  bool recorded_ = false;           // whether any operation is part of a recording
  bool enenqueued_steps_ = false;   // whether NCCL is busy with the next step
  std::uint32_t number_ = 0;
  std::vector<void const*> inputs_;
  std::exception_ptr failure_;
};

}}}  // namespace lockstep::comm::detail
#endif
