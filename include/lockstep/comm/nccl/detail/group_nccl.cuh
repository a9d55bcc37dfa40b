// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_NCCL)
#include <cuda_runtime.h>
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <lockstep/comm/detail/peer_watch.hpp>
#include <lockstep/core/error.hpp>

#if NCCL_VERSION_CODE < 21904
#error "Lockstep: NcclCommunicator needs NCCL 2.19.4 or later, which splits communicators and ends cleanly"
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Owns a nonblocking NCCL communicator. After a call it is busy for a while, and takes no other call until then. Only
/// a nonblocking communicator can be aborted while a peer does not answer.
class GroupNccl {
 public:
  GroupNccl() = default;
  GroupNccl(GroupNccl&& other) noexcept
      : group_(std::exchange(other.group_, nullptr)), aborted_(std::move(other.aborted_)) {}
  GroupNccl& operator=(GroupNccl&& other) noexcept {
    std::swap(group_, other.group_);
    std::swap(aborted_, other.aborted_);
    return *this;
  }
  /// Waits for peers that still read data of this rank, for at most finalize_seconds.
  ~GroupNccl() {
    wait_for_abort();
    if (!group_) return;
    auto const result = ncclCommFinalize(group_);
    auto const end = Clock::seconds() + finalize_seconds;
    ncclResult_t now = result;
    while (now == ncclInProgress && Clock::seconds() < end) {
      ::usleep(20);
      if (ncclCommGetAsyncError(group_, &now) != ncclSuccess) break;
    }
    if (now == ncclSuccess)
      ncclCommDestroy(group_);
    else
      ncclCommAbort(group_);
  }

  /// Creates the communicator of all ranks.   @collective
  static GroupNccl join(ncclUniqueId const& id, int rank, int ranks, PeerWatch const& watch) {
    GroupNccl out;
    auto config = nonblocking_config();
    auto const result = ncclCommInitRankConfig(&out.group_, ranks, id, rank, &config);
    out.await_result(result, "ncclCommInitRankConfig", watch);
    return out;
  }
  /// Splits the communicator. After an exception this communicator is aborted, too. NCCL continues the split until
  /// then, and writes to `out` when it is finished.   @collective
  GroupNccl split(int color, int key, PeerWatch const& watch) {
    GroupNccl out;
    auto config = nonblocking_config();
    try {
      await_result(ncclCommSplit(group_, color, key, &out.group_, &config), "ncclCommSplit", watch);
      out.await_result(ncclSuccess, "ncclCommSplit", watch);
    } catch (...) {
      abort(true);  // recordings may exist
      wait_for_abort();
      throw;
    }
    return out;
  }

  [[nodiscard]] ncclComm_t get() const noexcept { return group_; }
  [[nodiscard]] bool broken() const noexcept { return group_ == nullptr; }
  /// Aborts all work that waits for peers; its results are undefined. NCCL then waits for the end of its recordings,
  /// which the caller may hold. With recordings, the abort therefore runs on a thread of its own.
  void abort(bool has_recordings = false) noexcept {
    auto* const group = std::exchange(group_, nullptr);
    if (!group) return;
    if (!has_recordings) return static_cast<void>(ncclCommAbort(group));
    try {
      int device = 0;
      cudaGetDevice(&device);
      std::packaged_task<void()> task([group, device] {
        cudaSetDevice(device);  // a new thread's default is device 0
        ncclCommAbort(group);
      });
      aborted_ = task.get_future();
      std::thread(std::move(task)).detach();
    } catch (std::system_error const&) {  // no thread is available; nothing else can be done
    }
  }

  /// Returns the result of the last call, or ncclInProgress while NCCL is busy with it.
  [[nodiscard]] ncclResult_t state() const {
    ncclResult_t now = ncclSuccess;
    auto const result = ncclCommGetAsyncError(group_, &now);
    return result == ncclSuccess ? now : result;
  }
  /// Waits until NCCL is not busy.
  /// @throws RankLost, RankStalled, CommunicationError
  void await_result(ncclResult_t result, char const* call, PeerWatch const& watch) const {
    must(result, call, watch, call);
    ncclResult_t now = ncclInProgress;
    watch.wait_until(
        [&] {
          now = state();
          return now != ncclInProgress;
        },
        [call] { return std::string(call); });
    must(now, call, watch, call);
  }
  void must(ncclResult_t result, char const* call, PeerWatch const& watch, std::string const& doing) const {
    if (result == ncclSuccess || result == ncclInProgress) return;
    auto text = std::string(call) + " failed: " + ncclGetErrorString(result);
    if (char const* const more = ncclGetLastError(group_); more && *more) text += std::string(" (") + more + ")";
    if (result == ncclInvalidUsage)
      text += "; several ranks on one GPU each need their own NCCL_HOSTID, or NCCL 2.30's multi-rank mode";
    bool const is_own_fault = result == ncclInvalidUsage || result == ncclInvalidArgument;
    if (is_own_fault) throw CommunicationError(watch.own_name() + ": " + text);
    watch.throw_with_cause(text, doing);
  }

 private:
  static constexpr double finalize_seconds = 2;

  /// Waits for a limited time, and once: the abort does not end while recordings exist.
  void wait_for_abort() {
    if (auto const aborted = std::move(aborted_); aborted.valid())
      aborted.wait_for(std::chrono::duration<double>(finalize_seconds));
  }
  static ncclConfig_t nonblocking_config() noexcept {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
  }

  ncclComm_t group_ = nullptr;
  std::future<void> aborted_;  // set if a thread runs the abort
};

}}}  // namespace lockstep::comm::detail
#endif
