// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// The batches of a started loader as a session computes them. Where they are copied to a device, the next ones are
/// taken from the loader and sent on their way while those at hand are computed; an error of theirs is kept for whoever
/// asks for them. On the host they lie where they are wanted, and the loader alone works ahead.
template <class Loader, class Session>
class BatchFeed {
  using Held = decltype(std::declval<Loader&>().next());
  static constexpr bool sends = !Session::DeviceReplica::Space::host_accessible;

 public:
  /// `batches` micro-steps, counted from the loader's next. Both outlive the feed.
  BatchFeed(Loader& loader, Session& session, Index batches) : loader_(&loader), session_(&session), left_(batches) {}
  BatchFeed(BatchFeed const&) = delete;
  BatchFeed& operator=(BatchFeed const&) = delete;
  ~BatchFeed() { forget(); }

  /// The next micro-step's batches.
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

  /// What holds the batches at hand.
  [[nodiscard]] Held const& held() const noexcept { return *held_; }

  /// To be called when the work on the batches at hand is queued, and they have arrived: those go back to the loader,
  /// and the next ones, if any are left, on their way.
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
      session_->each([&](int shard, auto& replica) {
        if (shard % replica.shards() == 0) replica.send(sent_->batches()[static_cast<std::size_t>(shard)]);
      });
    }
  }

 private:
  void forget() noexcept {
    if constexpr (sends) {
      try {
        if (sent_) session_->each([](int, auto& replica) { replica.forget_sent(); });
      } catch (Error const&) {  // a device that has failed says so to whom it serves
      }
    }
  }

  Loader* loader_;
  Session* session_;
  Index left_;  // to be taken from the loader
  std::optional<Held> held_, sent_;
  std::exception_ptr error_;
};

}}}  // namespace lockstep::train
