// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/descriptor.hpp>
#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/shared_memory/detail/rank_waiter.hpp>
#include <lockstep/comm/shared_memory/detail/request_queue.hpp>
#include <lockstep/comm/shared_memory/detail/symmetric_heap.hpp>
#include <lockstep/comm/shared_memory/detail/transfer.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/memory/block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Prefetches a cache line in order to write it soon, and invalidates it in the caches of other cores. Any address is
/// valid.
[[gnu::always_inline]] inline void prefetch_to_write(void const* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<char const*>(at)));  // the builtin needs a target processor
#else
  __builtin_prefetch(at, 1);
#endif
}

class SharedMemoryRank;

/// Memory of one rank, and the communicators that work in it.
struct RankHeap {
  explicit RankHeap(std::size_t bytes) : allocator(bytes) {}

  SymmetricHeap allocator;
  std::vector<SharedMemoryRank*> communicators;
  std::vector<Index> abandoned_addresses;  // of operations that were incomplete when their communicator was destroyed
};

/// One rank of a group that shares memory: the engine of threads and of processes.
///
/// Every operation has a number, equal on all ranks. A rank posts its descriptor. When all have posted, each does its
/// part of the work and announces that it is done. There are three algorithms, and all ranks choose the same one:
/// - small: the input is posted too, and each rank computes its whole result from all inputs. One synchronization.
/// - direct: each rank works on its slice of every rank's memory, in place. Two synchronizations, no copy.
/// - staged: as direct, but in chunks through staging areas, if some rank's memory cannot be reached. Two
/// synchronizations per chunk.
///
/// Only `wait` and `finish` block. Operations in progress are processed in order.
class SharedMemoryRank {
 public:
  explicit SharedMemoryRank(launch::World const& world);
  SharedMemoryRank(SharedMemoryRank const&) = delete;
  SharedMemoryRank& operator=(SharedMemoryRank const&) = delete;
  ~SharedMemoryRank();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return memory_.size(); }

  void start(CollectiveOperation& operation);

  /// Makes all progress that needs no waiting.
  void progress();

  void wait(CollectiveOperation const& operation);
  void finish();

  /// Allocates zeroed memory in the rank's heap. Its offset may differ between ranks.   @collective
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  /// Frees memory. Keeps memory of abandoned operations until the run ends: other ranks may still work on it, and would
  /// complete a sum with wrong values.
  void free(std::byte* data, std::size_t bytes) noexcept;

  /// Returns the group of the ranks with this rank's color, ordered by key and then by rank. Its RankBlocks remain
  /// until the run ends, since the time of their last read is unknown.   @collective
  [[nodiscard]] std::shared_ptr<SharedMemoryRank> split(int color, int key);

 private:
  enum class Phase { match, stage, combine, unload };
  static constexpr std::size_t page = 4096, line_bytes = 64;

  /// Returns the rank's heap, which lives as long as the run.
  static std::shared_ptr<RankHeap> heap_of(launch::World const& world);

  SharedMemoryRank(GroupMemory memory, int rank, RankWaiter::Settings settings, std::shared_ptr<RankHeap> heap);

  /// Waits until `condition()`. After a failed operation all others fail, too: ranks no longer agree about the next
  /// one.
  template <class Condition>
  void wait_until(Condition const& condition) {
    for (;;) {
      if (failure_) std::rethrow_exception(failure_);
      for (Backoff backoff(!oversubscribed_);;) {
        progress();
        if (condition()) return;
        if (mismatch_ || !backoff.pause()) break;
      }
      if (requests_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
      try {
        if (mismatch_) waiter_.throw_if_mismatched(combining_, descriptor_of(*requests_[combining_].operation, rank_));
        waiter_.wait(requests_.first(), descriptor_of(*requests_[requests_.first()].operation, rank_));
      } catch (CommunicationError const& error) {
        failure_ = std::current_exception();
        waiter_.report_history(error);
        throw;
      } catch (...) {                         // of the function for warnings
        failure_ = std::current_exception();  // the operation may not live on
        throw;
      }
    }
  }

  /// Returns whether an incomplete operation of any of this rank's communicators uses the memory.
  [[nodiscard]] bool is_in_use(std::byte const* data, std::size_t bytes) const noexcept;

  [[nodiscard]] std::byte* allocate_block(std::size_t bytes);

  [[nodiscard]] RankBlock& mine() const noexcept { return memory_.block(rank_); }
  [[nodiscard]] static std::uint32_t slot_of(std::uint32_t number) noexcept { return number % RankBlock::slots; }

  void push(CollectiveOperation& operation, Index address);

  /// Posts the next operation, once all ranks are done with the previous operation in its slot.
  bool publish_next();

  /// Returns whether all ranks are done with `target` operations. Reads their counters only if the cached value is too
  /// old: each read takes a cache line from another core.
  bool slot_is_free(std::uint32_t target) noexcept;

  void post_input(Request& request, Slot& slot);

  /// Returns whether every rank's input fits into its slot. Equal on all ranks.
  [[nodiscard]] bool is_small(CollectiveOperation const& operation) const noexcept;

  /// Advances the next posted operation by one phase.
  bool combine_next();

  bool match(Request& request);

  [[nodiscard]] bool staged(Request const& request) const noexcept;
  [[nodiscard]] Index chunk(CollectiveOperation const& operation) const noexcept;

  bool stage(Request const& request);
  bool combine_chunk(Request const& request);
  bool unload(Request const& request);

  bool complete_next();

  /// Prefetches the cache lines of the next slot between operations; other ranks have read them last.
  void prefetch_next_slot() const noexcept;

  /// Faults pages in before the first use: a fault costs more than the sum over its page.
  static void populate(std::byte* data, std::size_t bytes) noexcept;

  int rank_;
  GroupMemory memory_;
  RankWaiter waiter_;
  Transfer transfer_;
  std::shared_ptr<RankHeap> heap_;  // shared by all of this rank's communicators in the run
  RequestQueue requests_;           // from the oldest incomplete request to the newest
  std::uint32_t published_;         // requests before this one are posted
  std::uint32_t combining_;         // this rank has done its part of all requests before this one
  std::uint32_t all_done_;          // lower bound of the operations that all ranks have done
  std::uint32_t chunks_;            // number of staged chunks so far
  Phase phase_ = Phase::match;
  Index chunk_begin_ = 0;
  std::size_t largest_posted_ = 0;  // largest input in a slot so far, in bytes
  bool mismatch_ = false;
  bool oversubscribed_;  // the run has more ranks than this machine has cores
  std::exception_ptr failure_;
};

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/shared_memory/detail/shared_memory_rank.ipp>
#endif
