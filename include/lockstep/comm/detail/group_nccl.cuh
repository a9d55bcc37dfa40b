// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_NCCL)
#include <cuda_runtime.h>
#include <nccl.h>

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

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// Owns an NCCL communicator none of whose calls wait: one that was asked for something is `busy` for a while, and is
/// asked for nothing else meanwhile. Only such a communicator can be given up while a peer does not answer.
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
  /// Peers may still be reading what this rank has sent, so it lets them finish, if they do.
  ~GroupNccl() {
    wait_for_abort();
    if (!group_) return;
    auto const asked = ncclCommFinalize(group_);
    auto const end = Clock::seconds() + leave_seconds;
    ncclResult_t now = asked;
    while (now == ncclInProgress && Clock::seconds() < end) {
      ::usleep(20);
      if (ncclCommGetAsyncError(group_, &now) != ncclSuccess) break;
    }
    if (now == ncclSuccess)
      ncclCommDestroy(group_);
    else
      ncclCommAbort(group_);
  }

  /// Collective.
  static GroupNccl join(ncclUniqueId const& id, int rank, int ranks, PeerWatch const& watch) {
    GroupNccl out;
    auto config = without_waiting();
    auto const asked = ncclCommInitRankConfig(&out.group_, ranks, id, rank, &config);
    out.settle(asked, "ncclCommInitRankConfig", watch);
    return out;
  }
  /// Collective. After an exception this one is given up, too: NCCL goes on with the split until then, and writes to
  /// `out` at its end.
  GroupNccl split(int color, int key, PeerWatch const& watch) {
    GroupNccl out;
    auto config = without_waiting();
    try {
      settle(ncclCommSplit(group_, color, key, &out.group_, &config), "ncclCommSplit", watch);
      out.settle(ncclSuccess, "ncclCommSplit", watch);
    } catch (...) {
      abort(true);  // there may be some
      wait_for_abort();
      throw;
    }
    return out;
  }

  [[nodiscard]] ncclComm_t get() const noexcept { return group_; }
  [[nodiscard]] bool broken() const noexcept { return group_ == nullptr; }
  /// All work that waits for peers ends, with whatever data. NCCL then waits for the end of its recordings, which the
  /// caller may hold: where there are any, it does so on a thread of its own.
  void abort(bool has_recordings = false) noexcept {
    auto* const group = std::exchange(group_, nullptr);
    if (!group) return;
    if (!has_recordings) return static_cast<void>(ncclCommAbort(group));
    try {
      int device = 0;
      cudaGetDevice(&device);
      std::packaged_task<void()> task([group, device] {
        cudaSetDevice(device);  // a new thread would wake the first one
        ncclCommAbort(group);
      });
      aborted_ = task.get_future();
      std::thread(std::move(task)).detach();
    } catch (std::system_error const&) {  // there is no thread to be had, and nothing that can be done without one
    }
  }

  /// What became of the last thing asked for; ncclInProgress while NCCL is busy with it.
  [[nodiscard]] ncclResult_t state() const {
    ncclResult_t now = ncclSuccess;
    auto const asked = ncclCommGetAsyncError(group_, &now);
    return asked == ncclSuccess ? now : asked;
  }
  /// Waits until NCCL is not busy.
  /// @throws RankLost, RankStalled, CommunicationError
  void settle(ncclResult_t asked, char const* call, PeerWatch const& watch) const {
    must(asked, call, watch, call);
    ncclResult_t now = ncclInProgress;
    watch.until(
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
      text += "; several ranks on one GPU need an NCCL_HOSTID of their own each, or NCCL 2.30's multi-rank mode";
    bool const from_here = result == ncclInvalidUsage || result == ncclInvalidArgument;
    if (from_here) throw CommunicationError(watch.me() + ": " + text);
    watch.explain(text, doing);
  }

 private:
  static constexpr double leave_seconds = 2;

  /// For a while, and once: it does not end while there are recordings.
  void wait_for_abort() {
    if (auto const aborted = std::move(aborted_); aborted.valid())
      aborted.wait_for(std::chrono::duration<double>(leave_seconds));
  }
  static ncclConfig_t without_waiting() noexcept {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
  }

  ncclComm_t group_ = nullptr;
  std::future<void> aborted_;  // by a thread
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
#endif
