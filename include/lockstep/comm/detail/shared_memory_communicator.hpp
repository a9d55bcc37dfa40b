// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/shared_memory_rank.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// What the thread and the process engine have in common: all but the name, and who makes the memory.
class SharedMemoryCommunicator {
 public:
  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  [[nodiscard]] int size() const noexcept { return self_->size(); }

  /// Collective. @throws std::bad_alloc when the rank's share of the machine's memory is used up
  [[nodiscard]] memory::Block allocate(std::size_t bytes) {
    if (bytes == 0) return {};
    auto owner = std::make_unique<std::shared_ptr<SharedMemoryRank>>(self_);  // the block keeps the memory there
    auto* const data = self_->take(bytes);
    return {data, bytes, &release, owner.release()};
  }

  /// @throws ConfigError when no engine could do it
  void start(Piece& piece) { self_->start(piece); }
  void progress() { self_->progress(); }
  /// @throws RankLost, RankStalled, CollectiveMismatch
  void wait(Piece const& piece) { self_->wait(piece); }
  /// @throws RankLost, RankStalled, CollectiveMismatch
  void finish() { self_->finish(); }

 protected:
  using Self = std::shared_ptr<SharedMemoryRank>;

  explicit SharedMemoryCommunicator(launch::World const& world) : self_(std::make_shared<SharedMemoryRank>(world)) {}
  explicit SharedMemoryCommunicator(Self self) : self_(std::move(self)) {}
  [[nodiscard]] Self split_self(int color, int key) { return self_->split(color, key); }

 private:
  static void release(void* owner, std::byte* data, std::size_t bytes) noexcept {
    std::unique_ptr<Self> const self(static_cast<Self*>(owner));
    (*self)->give_back(data, bytes);
  }

  Self self_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
