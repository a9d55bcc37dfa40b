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
#include <lockstep/comm/detail/describe.hpp>
#include <lockstep/comm/detail/request.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/comm/engine/any_communicator.hpp>
#include <lockstep/comm/nccl/detail/flags_nccl.cuh>
#include <lockstep/comm/nccl/detail/group_nccl.cuh>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/cuda_graph.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// One rank of a group whose device memory NCCL transfers. A host engine connects the same ranks over host memory.
///
/// Every operation on device memory has a note from each rank to all, over the host: its request and its piggybacked
/// doubles. NCCL does not wait for the notes. Ranks detect mismatched operations and missing ranks by them. NCCL would
/// wait for such ranks forever, so it is aborted.
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
  void follow(memory::Stream<CudaSpace> stream) { producer_ = stream; }

  void start(Piece& piece, memory::CudaEvent const* mark = nullptr) {
    check(piece, rank(), size());
    auto const what = request_of(piece, Clock::seconds());
    if (what.kind == Kind::barrier || what.largest_part() == 0 || !on_device(what)) return host_.start(piece);
    piece.started_seconds = what.started_seconds;
    piece.finished_seconds = 0;
    if (failure_) return;
    if (producer_ && !mark && memory::is_capturing(*producer_)) return record(what);
    push(what, mark);
    attempt([this] {  // completion is not queried here: that would take longer than everything else in start
      while (queue_next()) {
      }
    });
  }

  void progress() {
    host_.progress();
    advance();
  }
  void wait(Piece const& piece) {
    bool const ours = std::ranges::any_of(steps_, [&](auto const& step) { return step->what.piece == &piece; });
    if (ours || failure_) return wait_until([&] { return piece.complete(); });
    over_host([&] { host_.wait(piece); });
  }
  void finish() {
    wait_until([&] { return steps_.empty(); });
    over_host([&] { host_.finish(); });
  }

  /// Allocates memory that NCCL reaches from other devices without a copy, if they support it.
  [[nodiscard]] void* take(std::size_t bytes, void** registration) {
    finish();
    void* data = nullptr;
    if (auto const status = ncclMemAlloc(&data, bytes); status != ncclSuccess)
      throw CudaError("ncclMemAlloc of " + std::to_string(bytes) + " bytes: " + ncclGetErrorString(status));
    std::unique_ptr<void, decltype(&ncclMemFree)> held(data, &ncclMemFree);
    memory::check_cuda(cudaMemsetAsync(data, 0, bytes, stream_.view().get()), "cudaMemsetAsync");
    stream_.view().synchronize();
    group_.settle(ncclCommRegister(group_.get(), data, bytes, registration), "ncclCommRegister", watch_);
    blocks_.push_back({static_cast<std::byte*>(data), bytes});
    return held.release();
  }
  /// Frees device memory and abandons incomplete operations: a busy NCCL must not be called. Unlike cudaFree, NCCL
  /// unmaps memory that may be in use, so this waits for all work of the device.
  void give_back(void* data, void* registration) noexcept {
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
    failure_ = std::make_exception_ptr(CommunicationError(
        watch_.me() + " has left " + (steps_.empty() ? "NCCL's recorded operations" : tell(*steps_.front()))));
    group_.abort(recorded_);
  }

  /// Creates the communicator of the ranks with this color.   @collective
  [[nodiscard]] std::unique_ptr<RankNccl> split(int color, int key) {
    if (color < 0)
      throw ConfigError("NcclCommunicator::split: the color is " + std::to_string(color) + "; it needs 0 or more");
    finish();
    auto host = host_.split(color, key);
    GroupNccl group;
    over_host([&] { group = group_.split(color, key, watch_); });
    return std::unique_ptr<RankNccl>(new RankNccl(watch_.world(), std::move(host), std::move(group)));
  }

 private:
  struct Note {
    Descriptor descriptor;
    std::array<double, static_cast<std::size_t>(Piece::most_riders)> rider;
  };
  /// One operation in progress.
  struct Step {
    Request what;
    std::uint32_t number = 0;
    std::vector<Note> notes;
    Piece meeting;                            // gathers the notes
    memory::CudaEvent before, after;          // input ready (if a stream is followed); result ready
    memory::CudaEvent const* mark = nullptr;  // what the operation waits for: `before`, the caller's event, or nothing
  };

  RankNccl(launch::World const& world, AnyCommunicator host, GroupNccl group)
      : watch_(world, members(world.rank, host)), host_(std::move(host)), group_(std::move(group)) {
    in_.resize(static_cast<std::size_t>(size()));
    load_truths();
  }
  static std::vector<int> members(int run_rank, AnyCommunicator& host) {
    std::vector<int> all(static_cast<std::size_t>(host.size()));
    host.all_gather(&run_rank, all.data(), sizeof run_rank);
    return all;
  }

  [[nodiscard]] static bool holds(std::span<std::byte> block, void const* data) noexcept {
    return data >= block.data() && data < block.data() + block.size();
  }
  /// Returns whether memory is on the device. Queries CUDA only for memory that is not from `take`: the query is slow.
  [[nodiscard]] bool on_device(void const* data) const {
    if (std::any_of(blocks_.begin(), blocks_.end(), [=](auto const& block) { return holds(block, data); })) return true;
    cudaPointerAttributes attributes{};
    memory::check_cuda(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
    return attributes.type != cudaMemoryTypeUnregistered && attributes.type != cudaMemoryTypeHost;
  }
  [[nodiscard]] bool on_device(Request const& what) const {
    bool const device = on_device(what.out);
    if (what.in && what.in != what.out && on_device(what.in) != device)
      throw ConfigError(
          "NcclCommunicator::start: input and result of an operation must both be on the device, or both on the host");
    return device;
  }

  void push(Request const& what, memory::CudaEvent const* mark) {
    if (spare_.empty()) spare_.push_back(std::make_unique<Step>());
    auto& step = *steps_.emplace_back(std::move(spare_.back()));
    spare_.pop_back();
    set_note(step, what);
    step.mark = mark;
    if (producer_ && !mark) {
      step.before.record(*producer_);
      step.mark = &step.before;
    }
    host_.start(step.meeting);
  }
  void set_note(Step& step, Request const& what) {
    step.what = what;
    step.number = number_++;
    step.notes.resize(static_cast<std::size_t>(size()));
    auto& mine = step.notes[static_cast<std::size_t>(rank())];
    mine.descriptor = what.descriptor(rank());
    std::copy(what.rider.begin(), what.rider.end(), mine.rider.begin());
    step.meeting = {.type = ElementType::uint8,
                    .data = step.notes.data(),
                    .count = sizeof(Note),
                    .collective = Collective::all_gather,
                    .in = &mine};
  }

  /// Captures the operation into the stream's recording. Ranks compare it now: later runs have no comparison.
  void record(Request const& what) {
    if (!what.rider.empty())
      throw ConfigError(
          "NcclCommunicator::start: the doubles of `rider` go over the host, and cannot be recorded with the "
          "operation");
    recorded_ = true;  // from now on aborts use a thread of their own: this one must not wait for the device
    Step step;
    set_note(step, what);
    host_.start(step.meeting);
    over_host([&] { host_.wait(step.meeting); });
    attempt([&] {
      throw_if_mismatched(step);
      watch_.until(
          [&] {
            while (queue_next()) {
            }
            return queued_ == steps_.size();
          },
          [&] { return tell(*steps_[queued_]); });
      group_.settle(ask_nccl(what, group_.get(), rank(), size(), *producer_), "NCCL's call", watch_);
      make_truth_of(what, *producer_);
    });
    if (failure_) std::rethrow_exception(failure_);
    what.piece->finished_seconds = Clock::seconds();
  }

  /// Makes all progress that needs no waiting. Keeps an error for the next wait.
  void advance() {
    attempt([this] {
      while (queue_next() || complete_next()) {
      }
    });
  }
  template <class F>
  void attempt(F const& f) {
    if (failure_) return;
    try {
      f();
    } catch (CommunicationError const&) {
      give_up();
    }
  }
  void give_up() noexcept {
    failure_ = std::current_exception();
    group_.abort(recorded_);
  }

  /// Enqueues one operation after another on NCCL, each once NCCL is no longer busy with the previous one.
  bool queue_next() {
    if (queued_ == steps_.size()) return false;
    auto& step = *steps_[queued_];
    auto const stream = stream_.view();
    if (!asked_) {
      if (step.mark) step.mark->block(stream);
      group_.must(ask_nccl(step.what, group_.get(), rank(), size(), stream), "NCCL's call", watch_, tell(step));
      asked_ = true;
    }
    auto const state = group_.state();
    if (state == ncclInProgress) return false;
    group_.must(state, "NCCL", watch_, tell(step));
    make_truth_of(step.what, stream);
    step.after.record(stream);
    asked_ = false;
    ++queued_;
    return true;
  }

  bool complete_next() {
    if (queued_ == 0) return false;
    auto& step = *steps_.front();
    host_.progress();
    if (!step.meeting.complete()) return false;
    throw_if_mismatched(step);
    if (!step.after.reached()) {
      group_.must(group_.state(), "NCCL", watch_, tell(step));  // throws if a peer failed
      return false;
    }
    sum_riders(step);
    step.what.piece->finished_seconds = Clock::seconds();
    spare_.push_back(std::move(steps_.front()));
    steps_.erase(steps_.begin());
    --queued_;
    return true;
  }

  template <class Holds>
  void wait_until(Holds const& holds) {
    for (;;) {
      advance();
      if (failure_) std::rethrow_exception(failure_);
      if (holds()) return;
      if (steps_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
      auto& step = *steps_.front();
      auto const number = step.number;
      try {
        if (!step.meeting.complete())
          meet(step);
        else
          watch_.until(
              [&] {
                advance();
                return failure_ || steps_.empty() || steps_.front()->number != number;
              },
              [&] { return tell(step); });
      } catch (CommunicationError const&) {
        give_up();
      }
    }
  }
  /// Waits for the notes over the host engine, which names missing ranks. Adds the NCCL operation to its errors.
  void meet(Step& step) {
    auto const because = [&](CommunicationError const& error) { return error.what() + (", for " + tell(step)); };
    try {
      host_.wait(step.meeting);
    } catch (RankLost const& error) {
      throw RankLost(error.rank(), because(error), error.history());
    } catch (RankStalled const& error) {
      throw RankStalled(error.rank(), because(error), error.history());
    } catch (CollectiveMismatch const& error) {
      throw CollectiveMismatch(because(error), error.history());
    }
  }
  template <class F>
  void over_host(F const& f) {
    try {
      f();
    } catch (CommunicationError const&) {
      give_up();
      throw;
    }
  }

  [[nodiscard]] std::string tell(Step const& step) const {
    return "NCCL's operation " + std::to_string(step.number) + " (" + describe(step.what.descriptor(rank())) + ")";
  }
  void throw_if_mismatched(Step const& step) const {
    auto const told = disagreement(
        "NCCL's operation " + std::to_string(step.number), rank(), size(), step.what.descriptor(rank()),
        [&](int r) { return watch_.who(r); },
        [&](int r) { return &step.notes[static_cast<std::size_t>(r)].descriptor; });
    if (!told.empty()) throw CollectiveMismatch(told);
  }
  void sum_riders(Step& step) {
    if (step.what.rider.empty()) return;
    for (std::size_t r = 0; r < in_.size(); ++r) in_[r] = step.notes[r].rider.data();
    void* const out = step.what.rider.data();
    reduce_range(Operation::sum, ElementType::float64, in_.data(), size(), &out, 1, 0, std::ssize(step.what.rider));
  }

  PeerWatch watch_;
  /// NCCL needs few blocks, and all ranks wait for the last one: they start before blocks of queued kernels.
  memory::CudaStream stream_{memory::CudaStream::Priority::highest};
  std::vector<std::unique_ptr<Step>> steps_, spare_;  // in progress, oldest first; for reuse
  std::vector<std::span<std::byte>> blocks_;          // device memory from `take`
  AnyCommunicator host_;
  GroupNccl group_;
  std::optional<memory::Stream<CudaSpace>> producer_;
  std::size_t queued_ = 0;  // number of steps that are enqueued on the stream
  bool recorded_ = false;   // whether any operation is part of a recording
  bool asked_ = false;      // whether NCCL is busy with the next step
  std::uint32_t number_ = 0;
  std::vector<void const*> in_;
  std::exception_ptr failure_;
};

}}}  // namespace lockstep::comm::detail
#endif
