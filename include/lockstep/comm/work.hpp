// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/communicator.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// An operation under way, as all_reduce, reduce_scatter, all_gather and broadcast return it. Its memory stays
/// untouched until it is complete. Stays where it is made: `comm::Work const sum = comm::all_reduce(c, gradients);`.
template <Communicator C>
class [[nodiscard]] Work {
 public:
  /// Starts it. @throws ConfigError when no engine could do it
  Work(C& communicator, Piece const& piece) : communicator_(&communicator), piece_(piece) {
    communicator.start(piece_);
  }
  Work(Work const&) = delete;
  Work& operator=(Work const&) = delete;
  /// Waits. An error is then not heard here, but where this rank next waits.
  ~Work() {
    try {
      wait();
    } catch (Error const&) {
    }
  }

  /// Whether it is complete, after some progress. Says nothing of a rank that is lost: only wait does.
  [[nodiscard]] bool done() {
    if (!piece_.complete()) communicator_->progress();
    return piece_.complete();
  }
  /// Returns when it is complete. @throws RankLost, RankStalled, CollectiveMismatch
  void wait() const {
    if (!piece_.complete()) communicator_->wait(piece_);
  }
  /// When it was started and finished.
  [[nodiscard]] Piece const& piece() const noexcept { return piece_; }

 private:
  C* communicator_;
  Piece piece_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
