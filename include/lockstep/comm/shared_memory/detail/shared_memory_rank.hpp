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
#include <lockstep/comm/shared_memory/detail/prefetch_to_write.hpp>
#include <lockstep/comm/shared_memory/detail/rank_heap.hpp>
#include <lockstep/comm/shared_memory/detail/request_queue.hpp>
#include <lockstep/comm/shared_memory/detail/transfer.hpp>
#include <lockstep/comm/shared_memory/detail/waiting.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/memory/block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// One rank of a group that shares memory: the engine of threads and of processes.
///
/// Every operation has a number, equal on all ranks. A rank posts its request. When all have posted, each does its part
/// of the work and announces that it is done. There are three algorithms, and all ranks choose the same one:
/// - small: the input is posted too, and each rank computes its whole result from all inputs. One synchronization.
/// - direct: each rank works on its slice of every rank's memory, in place. Two synchronizations, no copy.
/// - staged: as direct, but in chunks through staging areas, if some rank's memory cannot be reached. Two
/// synchronizations per chunk.
///
/// Only `wait` and `finish` block. Operations in progress are processed in order.
class SharedMemoryRank {
 public:
  explicit SharedMemoryRank(launch::World const& world)
      : SharedMemoryRank(GroupMemory(world.segment, world.size), world.rank, {world.limits, world.warn},
                         heap_of(world)) {}
  SharedMemoryRank(SharedMemoryRank const&) = delete;
  SharedMemoryRank& operator=(SharedMemoryRank const&) = delete;
  ~SharedMemoryRank() {
    std::erase(heap_->communicators, this);
    for (; !requests_.empty(); requests_.pop()) heap_->given_up.push_back(requests_[requests_.first()].address);
    mine().connected.store(0);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return memory_.size(); }

  void start(Piece& piece) {
    check(piece, rank_, size());
    piece.finished_seconds = 0;
    request(request_of(piece, Clock::coarse_seconds()));
    if (!failure_ && !mismatch_) publish_next();
    piece.started_seconds = Clock::seconds();  // before the others have seen it
    progress();
  }

  /// Makes all progress that needs no waiting.
  void progress() {
    while (!mismatch_ && !failure_ && (publish_next() || combine_next() || complete_next())) {
    }
  }

  void wait(Piece const& piece) {
    wait_until([&] { return piece.complete(); });
  }
  void finish() {
    wait_until([&] { return requests_.empty(); });
  }

  /// Allocates zeroed memory in the rank's heap. Its offset may differ between ranks.   @collective
  [[nodiscard]] std::byte* take(std::size_t bytes) {
    auto* const data = place(bytes);
    try {
      populate(data, bytes);
      auto const number = requests_.end();
      request({.kind = Kind::allocate,
               .count = static_cast<Index>(bytes),
               .started_seconds = Clock::coarse_seconds(),
               .address = memory_.offset(data)});
      finish();
      for (int r = 0; r < size(); ++r)
        populate(memory_.at(memory_.block(r).slot[slot_of(number)].descriptor.address()), bytes);
    } catch (...) {
      give_back(data, bytes);
      throw;
    }
    return data;
  }
  /// Frees memory. Keeps memory of abandoned operations until the run ends: other ranks may still work on it, and would
  /// complete a sum with wrong values.
  void give_back(std::byte* data, std::size_t bytes) noexcept {
    if (is_under_way(data, bytes)) return;
    memory_.forget(data, (bytes + page - 1) / page * page);
    heap_->places.give_back(static_cast<std::size_t>(data - memory_.heap(rank_)));
  }

  /// Returns the group of the ranks with this rank's color, ordered by key and then by rank. Its RankBlocks remain
  /// until the run ends, since the time of their last read is unknown.   @collective
  [[nodiscard]] std::shared_ptr<SharedMemoryRank> split(int color, int key) {
    struct Entry {
      Index color, key, block;
    };
    auto const mine_at = memory_.offset(place(sizeof(RankBlock)));
    Entry const entry{color, key, mine_at};
    std::vector<Entry> all(static_cast<std::size_t>(size()));
    Piece gather{.type = ElementType::uint8,
                 .data = all.data(),
                 .count = sizeof entry,
                 .collective = Collective::all_gather,
                 .in = &entry};
    start(gather);
    finish();
    auto const key_of = [&](int r) { return all[static_cast<std::size_t>(r)].key; };
    std::vector<int> order;  // by key, then by rank
    for (int r = 0; r < size(); ++r) {
      if (all[static_cast<std::size_t>(r)].color != color) continue;
      auto at = order.end();
      while (at != order.begin() && key_of(at[-1]) > key_of(r)) --at;
      order.insert(at, r);
    }
    std::vector<GroupMemory::Member> members;
    members.reserve(order.size());
    for (int const r : order)
      members.push_back(
          {memory_.run_rank(r), reinterpret_cast<RankBlock*>(memory_.at(all[static_cast<std::size_t>(r)].block))});
    auto const place_in_order = std::find(order.begin(), order.end(), rank_) - order.begin();
    return std::shared_ptr<SharedMemoryRank>(new SharedMemoryRank(
        GroupMemory(memory_, std::move(members)), static_cast<int>(place_in_order), waiting_.settings(), heap_));
  }

 private:
  enum class Phase { meet, stage, combine, unload };
  static constexpr std::size_t page = 4096, line_bytes = 64;

  /// Returns the rank's heap, which lives as long as the run.
  static std::shared_ptr<RankHeap> heap_of(launch::World const& world) {
    auto& common = world.segment->common_to(world.rank);
    if (!common) common = std::make_shared<RankHeap>(GroupMemory(world.segment, world.size).heap_bytes());
    return std::static_pointer_cast<RankHeap>(common);
  }

  SharedMemoryRank(GroupMemory memory, int rank, Waiting::Settings settings, std::shared_ptr<RankHeap> heap)
      : rank_(rank),
        memory_(std::move(memory)),
        waiting_(memory_, rank_, std::move(settings)),
        transfer_(memory_, rank_),
        heap_(std::move(heap)),
        requests_(mine().posted.signal.load()),
        published_(requests_.first()),
        combining_(requests_.first()),
        all_done_(requests_.first() - RankBlock::slots),
        chunks_(mine().staged.signal.load()),
        crowded_(memory_.control().head.size > ::sysconf(_SC_NPROCESSORS_ONLN)) {
    auto const refuse = [&](char const* why) {
      throw ConfigError("comm::connect: rank " + std::to_string(rank_) + " " + why);
    };
    if (mine().done.signal.load() != requests_.first())
      refuse("was connected before, and gave up in the middle of an operation; end the run");
    if (mine().connected.exchange(1) != 0)
      refuse("is connected already; pass on its communicator, destroy it first, or make others with split(0, rank)");
    heap_->communicators.push_back(this);
  }

  /// Waits until `holds()`. After a failed operation all others fail, too: ranks no longer agree about the next one.
  template <class Holds>
  void wait_until(Holds const& holds) {
    for (;;) {
      if (failure_) std::rethrow_exception(failure_);
      for (Backoff backoff(!crowded_);;) {
        progress();
        if (holds()) return;
        if (mismatch_ || !backoff.pause()) break;
      }
      try {
        if (mismatch_) waiting_.throw_if_mismatched(combining_, requests_[combining_].descriptor(rank_));
        if (requests_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
        waiting_.wait(requests_.first(), requests_[requests_.first()].descriptor(rank_));
      } catch (CommunicationError const& error) {
        failure_ = std::current_exception();
        waiting_.tell_history(error);
        throw;
      }
    }
  }

  /// Returns whether an incomplete operation of any of this rank's communicators uses the memory.
  [[nodiscard]] bool is_under_way(std::byte const* data, std::size_t bytes) const noexcept {
    auto const begin = memory_.offset(data), end = begin + static_cast<Index>(bytes);
    auto const lies_there = [&](Index address) { return begin <= address && address < end; };
    for (auto* const one : heap_->communicators)
      for (auto number = one->requests_.first(); number != one->requests_.end(); ++number)
        if (lies_there(one->requests_[number].address)) return true;
    return std::any_of(heap_->given_up.begin(), heap_->given_up.end(), lies_there);
  }

  [[nodiscard]] std::byte* place(std::size_t bytes) {
    bytes = (bytes + page - 1) / page * page;
    auto const at =
        heap_->places.take(bytes, bytes >= launch::SharedSegment::unit ? launch::SharedSegment::unit : page);
    if (at == SymmetricHeap::none) throw std::bad_alloc();
    return memory_.heap(rank_) + at;
  }

  [[nodiscard]] RankBlock& mine() const noexcept { return memory_.block(rank_); }
  [[nodiscard]] static std::uint32_t slot_of(std::uint32_t number) noexcept { return number % RankBlock::slots; }

  void request(Request what) {
    if (what.bytes(rank_, size()) > 0) what.address = memory_.address(what.in);
    requests_.push(what);
  }

  /// Posts the next operation, once all ranks are done with the previous operation in its slot.
  bool publish_next() {
    if (published_ == requests_.end() || published_ - requests_.first() == RankBlock::slots) return false;
    if (!slot_is_free(published_ - RankBlock::slots + 1)) return false;
    auto& what = requests_[published_];
    auto& slot = mine().slot[slot_of(published_)];
    post_input(what, slot);
    std::copy(what.rider.begin(), what.rider.end(), slot.rider.begin());
    slot.descriptor.store(what.descriptor(rank_), published_);
    mine().posted.signal.post(++published_);
    return true;
  }

  /// Returns whether all ranks are done with `target` operations. Reads their counters only if the cached value is too
  /// old: each read takes a cache line from another core.
  bool slot_is_free(std::uint32_t target) noexcept {
    if (reached(all_done_, target)) return true;
    all_done_ = mine().done.signal.load();
    for (int r = 0; r < size(); ++r) {
      auto const done = memory_.block(r).done.signal.load();
      if (reached(all_done_, done)) all_done_ = done;
    }
    return reached(all_done_, target) || waiting_.all_reached(&RankBlock::done, target);
  }

  void post_input(Request& what, Slot& slot) {
    auto const bytes = static_cast<std::size_t>(what.bytes(rank_, size()));
    if (bytes == 0) return;
    bool const small = what.small(size());
    what.copied = !small && what.address < 0 && bytes <= Slot::copy_bytes;
    if (small || what.copied) {
      std::memcpy(slot.input.data(), what.in, bytes);
      most_posted_ = std::max(most_posted_, bytes);
    }
    if (what.copied) what.address = memory_.offset(slot.input.data());
  }

  /// Advances the next posted operation by one phase.
  bool combine_next() {
    if (combining_ == published_) return false;
    auto& what = requests_[combining_];
    switch (phase_) {
      case Phase::meet:
        return meet(what);
      case Phase::stage:
        return stage(what);
      case Phase::combine:
        return combine_chunk(what);
      case Phase::unload:
        return unload(what);
    }
    return false;
  }

  bool meet(Request& what) {
    if (!waiting_.all_posted(combining_)) return false;
    bool const small = what.small(size());
    bool reachable = true;
    auto const expected = what.descriptor(rank_);
    for (int r = 0; r < size(); ++r) {
      auto const other = memory_.block(r).slot[slot_of(combining_)].descriptor.load();
      if (!same(expected, other)) mismatch_ = true;
      reachable = reachable && (other.address >= 0 || what.bytes(r, size()) == 0);
    }
    if (mismatch_) return false;
    transfer_.sum_riders(what, slot_of(combining_));
    what.needs_all = !small;
    if (what.needs_all && !reachable) {
      what.needs_all = false;  // its chunks synchronize on their own
      chunk_begin_ = 0;
      phase_ = Phase::stage;
      return true;
    }
    if (small) {
      transfer_.combine_small(what, slot_of(combining_));
    } else {
      prefetch_to_write(&mine().done);  // a rank that waited for the last operation has the line
      transfer_.combine(what, slot_of(combining_), 0, what.largest_part());
    }
    mine().done.signal.post(++combining_);
    return true;
  }

  [[nodiscard]] bool staged(Request const& what) const noexcept {
    return what.address < 0 && what.bytes(rank_, size()) > 0;
  }
  [[nodiscard]] Index chunk(Request const& what) const noexcept {
    return std::min(what.largest_part() - chunk_begin_,
                    static_cast<Index>(RankBlock::staging_bytes) / what.element_bytes() / what.parts(size()));
  }

  bool stage(Request& what) {
    if (staged(what)) transfer_.stage(what, chunk_begin_, chunk(what), mine().staging.data());
    mine().staged.signal.post(++chunks_);
    phase_ = Phase::combine;
    return true;
  }
  bool combine_chunk(Request& what) {
    if (!waiting_.all_reached(&RankBlock::staged, chunks_)) return false;
    transfer_.combine(what, slot_of(combining_), chunk_begin_, chunk(what));
    mine().combined.signal.post(chunks_);
    phase_ = Phase::unload;
    return true;
  }
  bool unload(Request& what) {
    if (!waiting_.all_reached(&RankBlock::combined, chunks_)) return false;
    auto const size = what.element_bytes();
    auto const n = chunk(what);
    if (what.kind == Kind::all_reduce && staged(what))
      std::memcpy(static_cast<std::byte*>(what.out) + chunk_begin_ * size, mine().staging.data(),
                  static_cast<std::size_t>(n * size));
    chunk_begin_ += n;
    phase_ = chunk_begin_ < what.largest_part() ? Phase::stage : Phase::meet;
    if (phase_ == Phase::meet) mine().done.signal.post(++combining_);
    return true;
  }

  bool complete_next() {
    if (requests_.first() == combining_) return false;
    auto const& what = requests_[requests_.first()];
    if (what.needs_all && !waiting_.all_reached(&RankBlock::done, requests_.first() + 1)) return false;
    if (what.copied && what.kind == Kind::all_reduce)
      std::memcpy(what.out, mine().slot[slot_of(requests_.first())].input.data(),
                  static_cast<std::size_t>(what.bytes(rank_, size())));
    if (what.piece) what.piece->finished_seconds = Clock::seconds();
    requests_.pop();
    if (requests_.empty()) fetch_next_slot();
    return true;
  }

  /// Prefetches the cache lines of the next slot between operations; other ranks have read them last.
  void fetch_next_slot() const noexcept {
    auto const& slot = mine().slot[slot_of(published_)];
    auto const* const from = reinterpret_cast<std::byte const*>(&slot);
    auto const bytes = offsetof(Slot, input) + most_posted_;
    for (std::size_t at = 0; at < bytes; at += line_bytes) prefetch_to_write(from + at);
  }

  /// Faults pages in before the first use: a fault costs more than the sum over its page.
  static void populate(std::byte* data, std::size_t bytes) noexcept {
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE; older kernels reject it, and pages fault later
    if (bytes != 0) ::madvise(data, bytes, populate_write);
  }

  int rank_;
  GroupMemory memory_;
  Waiting waiting_;
  Transfer transfer_;
  std::shared_ptr<RankHeap> heap_;  // shared by all of this rank's communicators in the run
  RequestQueue requests_;           // from the oldest incomplete request to the newest
  std::uint32_t published_;         // requests before this one are posted
  std::uint32_t combining_;         // this rank has done its part of all requests before this one
  std::uint32_t all_done_;          // lower bound of the operations that all ranks have done
  std::uint32_t chunks_;            // number of staged chunks so far
  Phase phase_ = Phase::meet;
  Index chunk_begin_ = 0;
  std::size_t most_posted_ = 0;  // largest input in a slot so far, in bytes
  bool mismatch_ = false;
  bool crowded_;  // the run has more ranks than this machine has cores
  std::exception_ptr failure_;
};

}}}  // namespace lockstep::comm::detail
