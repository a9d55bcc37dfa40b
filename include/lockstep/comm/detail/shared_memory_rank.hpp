// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>
#include <memory>

#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/request_queue.hpp>
#include <lockstep/comm/detail/symmetric_heap.hpp>
#include <lockstep/comm/detail/waiting.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/memory/block.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// One rank of a group that shares memory: the engine of threads and of processes.
///
/// Every operation has a number, alike on all ranks. A rank posts what it asks for; when all have posted, each does its
/// part of the work and says that it is done. There are three ways, which all ranks choose alike:
/// - small: the input is posted too, and each rank works out the whole result from all inputs. One meeting.
/// - direct: each rank works on its slice of everybody's memory, in place. Two meetings, no copy.
/// - staged: the same in chunks through staging areas, where some rank's memory cannot be reached. Two meetings a
/// chunk.
///
/// Nothing here blocks but `finish`. When several operations are under way they are worked on in order.
class SharedMemoryRank {
 public:
  explicit SharedMemoryRank(launch::World const& world)
      : size_(world.size),
        rank_(world.rank),
        memory_(world.segment, world.size),
        waiting_(memory_, world),
        transfer_(memory_, rank_, size_),
        heap_(memory_.heap_bytes()),
        requests_(mine().posted.signal.load()),
        published_(requests_.first()),
        combining_(requests_.first()),
        chunks_(mine().staged.signal.load()) {
    auto const refuse = [&](char const* why) {
      throw ConfigError("comm::connect: rank " + std::to_string(rank_) + " " + why);
    };
    if (mine().done.signal.load() != requests_.first())
      refuse("was connected before, and gave up in the middle of an operation; end the run");
    if (mine().connected.exchange(1) != 0)
      refuse("is connected already; hand its communicator on, or destroy it first");
  }
  SharedMemoryRank(SharedMemoryRank const&) = delete;
  SharedMemoryRank& operator=(SharedMemoryRank const&) = delete;
  ~SharedMemoryRank() { mine().connected.store(0); }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  void start(Piece& piece) {
    check(piece);
    piece.started_seconds = Clock::seconds();
    request({.kind = Kind::all_reduce,
             .type = piece.type,
             .operation = piece.operation,
             .count = piece.count,
             .in = piece.data,
             .out = piece.data,
             .rider = piece.rider,
             .piece = &piece});
    progress();
  }

  /// Does what can be done without waiting.
  void progress() {
    while (!mismatch_ && (publish_next() || combine_next() || complete_next())) {
    }
  }

  void finish() {
    for (;;) {
      progress();
      if (mismatch_) waiting_.throw_mismatch(combining_, requests_[combining_].descriptor());
      if (requests_.empty()) return;
      waiting_.wait(requests_.first(), requests_[requests_.first()].descriptor());
    }
  }

  void run(Request const& what) {
    request(what);
    finish();
  }

  /// A place in the rank's heap, alike on all ranks, zeroed. Collective.
  [[nodiscard]] std::byte* take(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    bytes = (bytes + page - 1) / page * page;
    auto const offset = heap_.take(bytes, bytes >= launch::SharedSegment::unit ? launch::SharedSegment::unit : page);
    if (offset == SymmetricHeap::none) throw std::bad_alloc();
    auto* const data = memory_.heap(rank_) + offset;
    try {
      populate(data, bytes);
      Request ask{.kind = Kind::allocate, .count = static_cast<Index>(bytes)};
      ask.address = static_cast<Index>(offset);
      run(ask);
    } catch (...) {
      give_back(data, bytes);
      throw;
    }
    for (int r = 0; r < size_; ++r) populate(memory_.heap(r) + offset, bytes);
    return data;
  }
  void give_back(std::byte* data, std::size_t bytes) noexcept {
    memory_.forget(data, (bytes + 4095) / 4096 * 4096);
    heap_.give_back(static_cast<std::size_t>(data - memory_.heap(rank_)));
  }

 private:
  enum class Phase { meet, stage, combine, unload };

  [[nodiscard]] RankBlock& mine() const noexcept { return memory_.block(rank_); }
  [[nodiscard]] static std::uint32_t slot_of(std::uint32_t number) noexcept { return number % RankBlock::slots; }

  void request(Request what) {
    if (what.kind != Kind::allocate && what.gives(rank_) && what.bytes() > 0) what.address = memory_.address(what.in);
    requests_.push(what);
  }

  /// Posts the next operation, once all ranks have done with the one whose slot it takes.
  bool publish_next() {
    if (published_ == requests_.end() || published_ - requests_.first() == RankBlock::slots) return false;
    if (!waiting_.all_reached(&RankBlock::done, published_ - RankBlock::slots + 1)) return false;
    auto& what = requests_[published_];
    auto& slot = mine().slot[slot_of(published_)];
    post_input(what, slot);
    slot.descriptor = what.descriptor();
    std::copy(what.rider.begin(), what.rider.end(), slot.rider.begin());
    mine().posted.signal.post(++published_);
    return true;
  }

  void post_input(Request& what, Slot& slot) const {
    auto const bytes = static_cast<std::size_t>(what.bytes());
    if (bytes == 0 || !what.gives(rank_)) return;
    bool const small = bytes <= Slot::small_bytes;
    what.copied = !small && what.address < 0 && bytes <= Slot::copy_bytes;
    if (small || what.copied) std::memcpy(slot.input.data(), what.in, bytes);
    if (what.copied) what.address = memory_.offset(slot.input.data());
  }

  /// Takes the next posted operation one phase further.
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
    if (!waiting_.all_reached(&RankBlock::posted, combining_ + 1)) return false;
    bool reachable = true;
    auto const expected = what.descriptor();
    for (int r = 0; r < size_; ++r) {
      auto const& other = memory_.block(r).slot[slot_of(combining_)].descriptor;
      if (!same(expected, other)) mismatch_ = true;
      reachable = reachable && (!what.gives(r) || other.address >= 0);
    }
    if (mismatch_) return false;
    transfer_.sum_riders(what, slot_of(combining_));
    what.needs_all = what.bytes() > static_cast<Index>(Slot::small_bytes);
    if (what.needs_all && !reachable) {
      what.needs_all = false;  // its chunks have meetings of their own
      chunk_begin_ = 0;
      phase_ = Phase::stage;
      return true;
    }
    if (what.needs_all)
      transfer_.combine(what, slot_of(combining_), 0, what.count);
    else
      transfer_.combine_small(what, slot_of(combining_));
    mine().done.signal.post(++combining_);
    return true;
  }

  [[nodiscard]] bool staged(Request const& what) const noexcept { return what.address < 0 && what.gives(rank_); }
  [[nodiscard]] Index chunk(Request const& what) const noexcept {
    return std::min(what.count - chunk_begin_, static_cast<Index>(RankBlock::staging_bytes) / what.element_bytes());
  }

  bool stage(Request& what) {
    auto const size = what.element_bytes();
    if (staged(what))
      std::memcpy(mine().staging.data(), static_cast<std::byte const*>(what.in) + chunk_begin_ * size,
                  static_cast<std::size_t>(chunk(what) * size));
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
    phase_ = chunk_begin_ < what.count ? Phase::stage : Phase::meet;
    if (phase_ == Phase::meet) mine().done.signal.post(++combining_);
    return true;
  }

  bool complete_next() {
    if (requests_.first() == combining_) return false;
    auto const& what = requests_[requests_.first()];
    if (what.needs_all && !waiting_.all_reached(&RankBlock::done, requests_.first() + 1)) return false;
    if (what.copied && what.kind == Kind::all_reduce)
      std::memcpy(what.out, mine().slot[slot_of(requests_.first())].input.data(),
                  static_cast<std::size_t>(what.bytes()));
    if (what.piece) what.piece->finished_seconds = Clock::seconds();
    requests_.pop();
    return true;
  }

  /// Has the pages there before the first use: a fault costs more than the sum over its page.
  static void populate(std::byte* data, std::size_t bytes) noexcept {
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE; older kernels refuse it, and fault later
    if (bytes != 0) ::madvise(data, bytes, populate_write);
  }

  int size_, rank_;
  GroupMemory memory_;
  Waiting waiting_;
  Transfer transfer_;
  SymmetricHeap heap_;
  RequestQueue requests_;    // from the oldest incomplete to the newest
  std::uint32_t published_;  // requests before this one are posted
  std::uint32_t combining_;  // requests before this one have had this rank's part of the work
  std::uint32_t chunks_;     // staged chunks so far
  Phase phase_ = Phase::meet;
  Index chunk_begin_ = 0;
  bool mismatch_ = false;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
