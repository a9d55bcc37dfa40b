// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/communicator.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Handle of an operation in progress, returned by all_reduce, reduce_scatter, all_gather and broadcast. Do not touch
/// the operation's memory until it is complete. Cannot be moved or copied:
/// `comm::Work const sum = comm::all_reduce(c, gradients);`.
template <Communicator C>
class [[nodiscard]] Work {
 public:
  /// Starts the operation. @throws ConfigError if no engine can run it
  Work(C& communicator, Piece const& piece) : communicator_(&communicator), piece_(piece) {
    communicator.start(piece_);
  }
  Work(Work const&) = delete;
  Work& operator=(Work const&) = delete;
  /// Waits and ignores errors: this rank's next wait throws them again.
  ~Work() {
    try {
      wait();
    } catch (Error const&) {
    }
  }

  /// Makes some progress, then returns whether the operation is complete. Does not detect lost ranks: only wait does.
  [[nodiscard]] bool done() {
    if (!piece_.complete()) communicator_->progress();
    return piece_.complete();
  }
  /// Returns once the operation is complete. @throws RankLost, RankStalled, CollectiveMismatch
  void wait() const {
    if (!piece_.complete()) communicator_->wait(piece_);
  }
  /// Returns the operation, with its start and end times.
  [[nodiscard]] Piece const& piece() const noexcept { return piece_; }

 private:
  C* communicator_;
  Piece piece_;
};

}}}  // namespace lockstep::comm
