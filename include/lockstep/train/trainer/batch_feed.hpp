// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Gives a session the batches of a started loader. On a device it prefetches: it copies the next batches while the
/// session computes the current ones. An error of a prefetch is thrown by the next call of `next`. On the host it
/// copies nothing, and only the loader prefetches.
template <class Loader, class Session>
class BatchFeed {
  using Held = decltype(std::declval<Loader&>().next());
  static constexpr bool sends = !Session::DeviceReplica::Space::host_accessible;

 public:
  /// Takes `batches` micro-steps from the loader. Loader and session must outlive the feed.
  BatchFeed(Loader& loader, Session& session, Index batches) : loader_(&loader), session_(&session), left_(batches) {}
  BatchFeed(BatchFeed const&) = delete;
  BatchFeed& operator=(BatchFeed const&) = delete;
  ~BatchFeed() { forget(); }

  /// Returns the batches of the next micro-step. They are valid until the next call of `next` or `send_next`.
  /// @throws what the loader throws
  [[nodiscard]] std::span<typename Loader::Batch const> next() {
    held_.reset();
    if (error_) {
      auto const error = std::exchange(error_, nullptr);
      std::rethrow_exception(error);
    }
    if (sent_) {
      held_ = std::exchange(sent_, std::nullopt);
    } else {
      --left_;
      held_.emplace(loader_->next());
    }
    return held_->batches();
  }

  /// Returns the loader's object that owns the current batches.
  [[nodiscard]] Held const& held() const noexcept { return *held_; }

  /// Returns the current batches to the loader and starts the copy of the next ones, if any are left. Call it after the
  /// work on the current batches is queued and their copy has arrived.
  void send_next() {
    held_.reset();
    if constexpr (sends) {
      if (sent_ || error_ || left_ == 0) return;
      --left_;
      try {
        sent_.emplace(loader_->next());
      } catch (...) {
        error_ = std::current_exception();
        return;
      }
      session_->for_each_shard([&](int shard, auto& replica) {
        if (shard % replica.shards() == 0) replica.prefetch(sent_->batches()[static_cast<std::size_t>(shard)]);
      });
    }
  }

 private:
  void forget() noexcept {
    if constexpr (sends) {
      try {
        if (sent_) session_->for_each_shard([](int, auto& replica) { replica.cancel_prefetch(); });
      } catch (Error const&) {  // the session reports a failed device to its caller
      }
    }
  }

  Loader* loader_;
  Session* session_;
  Index left_;  // batches to take from the loader
  std::optional<Held> held_, sent_;
  std::exception_ptr error_;
};

}}}  // namespace lockstep::train
