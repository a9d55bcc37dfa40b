// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/mpi/detail/rank_mpi.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/wait_limits.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/resource.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

#if defined(LOCKSTEP_MPI)

/// Connects the ranks of an MPI communicator, on one host or several. Use
/// `comm::AnyCommunicator{comm::MpiCommunicator{}}` between MPI_Init and MPI_Finalize. A rank that waits keeps a core
/// busy. Not thread-safe: the calling thread calls MPI. `allocate` returns memory of this rank only. MPI's launcher
/// handles lost ranks; errors do not name a rank that stalls. MPI cannot cancel an operation: after an error, memory
/// from `allocate` is kept as long as MPI may use it. Keep other memory of incomplete operations until the process
/// ends.
/// @determinism bitwise, equal to all other engines except NCCL
class MpiCommunicator {
 public:
  /// @collective   @throws ConfigError before MPI_Init or after MPI_Finalize
  explicit MpiCommunicator(MPI_Comm group = MPI_COMM_WORLD, launch::WaitLimits limits = {},
                           std::function<void(std::string const&)> warn = {})
      : self_(std::make_shared<detail::RankMpi>(copy(group), limits, std::move(warn))) {}

  /// Returns this rank, in [0, size()).
  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return self_->size(); }
  /// Returns the engine's name, "mpi".
  [[nodiscard]] char const* name() const noexcept { return "mpi"; }
  /// Returns zeroed memory of this rank only. It is kept for MPI if it is freed while an operation is incomplete.
  /// @throws memory::OutOfMemory
  [[nodiscard]] memory::Block allocate(std::size_t bytes) const {
    auto memory = memory::HostResource{}.allocate(bytes);
    auto* const data = memory.data();
    if (!data) return memory;
    return {data, bytes, &release, new Owner{self_, std::move(memory)}};
  }
  /// Starts an operation, which must live until it is complete. Never blocks.
  /// @throws ConfigError if no engine can run it
  void start(CollectiveOperation& operation) { self_->start(operation); }
  /// Advances the operations that were started.
  void progress() { self_->progress(); }
  /// Waits until the operation is complete.   @throws RankStalled, CollectiveMismatch, CommunicationError
  void wait(CollectiveOperation const& operation) { self_->wait(operation); }
  /// Waits until all operations are complete.   @throws RankStalled, CollectiveMismatch, CommunicationError
  void finish() { self_->finish(); }
  /// Returns the communicator of the ranks with this rank's color, ordered by key and then by rank.
  /// @param color 0 or more   @collective
  [[nodiscard]] MpiCommunicator split(int color, int key) {
    return MpiCommunicator(std::make_shared<detail::RankMpi>(self_->split(color, key), self_->limits(), self_->warn()));
  }

 private:
  struct Owner {
    std::shared_ptr<detail::RankMpi> self;
    memory::Block memory;
  };
  explicit MpiCommunicator(std::shared_ptr<detail::RankMpi> self) : self_(std::move(self)) {}
  static void release(void* owner, std::byte*, std::size_t) noexcept {
    std::unique_ptr<Owner> mine(static_cast<Owner*>(owner));
    if (mine->self->in_flight()) static_cast<void>(mine.release());  // MPI may still use the memory
  }
  /// Duplicates the communicator, so that this engine's messages do not match the program's own MPI calls.
  static MPI_Comm copy(MPI_Comm group) {
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended)
      throw ConfigError("MpiCommunicator: made " + std::string(begun ? "after MPI_Finalize" : "before MPI_Init") +
                        "; call MPI_Init first, and MPI_Finalize when no communicator is left");
    MPI_Comm out = MPI_COMM_NULL;
    if (MPI_Comm_dup(group, &out) != MPI_SUCCESS) throw CommunicationError("MpiCommunicator: MPI_Comm_dup failed");
    return out;
  }

  std::shared_ptr<detail::RankMpi> self_;
};
static_assert(Communicator<MpiCommunicator>);

#else

/// Placeholder without MPI: its use fails to compile and names the target to link.
template <bool linked = false>
class MpiCommunicator {
  static_assert(linked, "Lockstep: MpiCommunicator needs the target lockstep::mpi (Debian: libopenmpi-dev)");
};

#endif

}}}  // namespace lockstep::comm
