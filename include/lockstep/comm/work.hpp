// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/communicator.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Handle of an operation in progress, returned by all_reduce, reduce_scatter, all_gather and broadcast. Do not touch
/// the operation's memory until it is complete. Cannot be moved or copied:
/// `comm::Work const sum = comm::all_reduce(c, gradients);`.
template <Communicator CommunicatorType>
class [[nodiscard]] Work {
 public:
  /// Starts the operation. @throws ConfigError if no engine can run it
  Work(CommunicatorType& communicator, CollectiveOperation const& operation)
      : communicator_(&communicator), operation_(operation) {
    communicator.start(operation_);
  }
  Work(Work const&) = delete;
  Work& operator=(Work const&) = delete;
  /// Waits and ignores errors, also exceptions of the function for warnings: this rank's next wait throws them again.
  ~Work() {
    try {
      wait();
    } catch (...) {
    }
  }

  /// Makes some progress, then returns whether the operation is complete. Does not detect lost ranks: only wait does.
  [[nodiscard]] bool done() {
    if (!operation_.complete()) communicator_->progress();
    return operation_.complete();
  }
  /// Returns once the operation is complete. @throws RankLost, RankStalled, CollectiveMismatch
  void wait() const {
    if (!operation_.complete()) communicator_->wait(operation_);
  }
  /// Returns the operation, with its start and end times.
  [[nodiscard]] CollectiveOperation const& operation() const noexcept { return operation_; }
  /// Deprecated: use operation().
  [[deprecated("operation()")]] [[nodiscard]] CollectiveOperation const& piece() const noexcept { return operation_; }

 private:
  CommunicatorType* communicator_;
  CollectiveOperation operation_;
};

}}}  // namespace lockstep::comm
