// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/data/detail/loader_slot.hpp>
#include <lockstep/data/sampler.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// The machinery of a DataLoader: slots wait in `queue_` in the order of delivery; workers claim runs of rows, from the
/// front of the queue first, so that a slow sample holds up its own batch only and the next batch is always the nearest
/// to being ready. One mutex guards the bookkeeping; samples are read and written outside it.
template <class D, class O, class C>
class LoaderCore {
 public:
  using Slot = LoaderSlot<D, C>;
  using Shard = LoaderShard<D, C>;

  LoaderCore(D dataset, O order, C collate, Index batch_size, int workers, int prefetch, Tail tail)
      : dataset_(std::move(dataset)),
        order_(std::move(order)),
        collate_(std::move(collate)),
        batch_size_(batch_size),
        workers_(workers),
        tail_(tail),
        slots_(static_cast<std::size_t>(std::max(prefetch, 1) + 1)) {
    queue_.reserve(slots_.size());
    free_.reserve(slots_.size());
  }
  ~LoaderCore() { stop(); }
  LoaderCore(LoaderCore const&) = delete;
  LoaderCore& operator=(LoaderCore const&) = delete;

  [[nodiscard]] O const& order() const noexcept { return order_; }
  [[nodiscard]] EpochLayout layout(Split const& split) const noexcept {
    return {static_cast<Index>(order_.size()), batch_size_, split.all, tail_};
  }

  void start(Split const& split, Index epoch, Index step, Index last_epoch) {
    std::unique_lock lock(mutex_);
    cancel(lock);
    for (auto& slot : slots_) {
      // What the user still holds stays theirs alone.
      if (!slot || slot->held || slot->shards.size() != static_cast<std::size_t>(split.count)) {
        slot = std::make_shared<Slot>(most_rows(), split.count);
      }
      free_.push_back(slot.get());
    }
    split_ = split;
    layout_ = layout(split);
    epoch_ = epoch;
    step_ = step;
    last_epoch_ = layout_.steps() == 0 ? epoch : last_epoch;
    if (step_ >= layout_.steps()) advance_epoch();
    while (static_cast<int>(threads_.size()) < workers_) threads_.emplace_back([this] { work(); });
    if (workers_ > 0) assign(slots_.size());
    work_.notify_all();
  }

  /// The next micro-step, ready. @throws DataError of the sample that failed; what follows is unaffected
  std::shared_ptr<Slot> next() {
    std::unique_lock lock(mutex_);
    if (queue_.empty()) assign(1);
    if (queue_.empty()) refuse_next();
    auto* const slot = queue_.front();
    if (!slot->ready()) {
      auto const begin = Clock::seconds();
      if (workers_ > 0) {
        ready_.wait(lock, [&] { return slot->ready(); });
      } else {
        while (!slot->ready()) run_one(lock);
      }
      wait_seconds_ += Clock::seconds() - begin;
    }
    queue_.erase(queue_.begin());
    if (auto const* shard = slot->failed()) {
      struct Recycle {
        LoaderCore& core;
        Slot* slot;
        ~Recycle() { core.recycle(slot); }
      } after_the_throw{*this, slot};
      slot->rethrow(*shard);
    }
    slot->held = true;
    return *owner(slot);
  }

  void release(Slot* slot) noexcept {
    std::lock_guard lock(mutex_);
    slot->held = false;
    if (owner(slot) != slots_.end()) recycle(slot);  // a start since then has replaced it
  }

  /// Ends the threads; what is held stays valid.
  void stop() noexcept {
    {
      std::unique_lock lock(mutex_);
      cancel(lock);
      stopped_ = true;
      work_.notify_all();
    }
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  [[nodiscard]] double wait_seconds() const {
    std::lock_guard lock(mutex_);
    return wait_seconds_;
  }

 private:
  /// Of one batch: an epoch may be smaller than the batch size.
  [[nodiscard]] Index most_rows() const noexcept { return std::min(batch_size_, static_cast<Index>(order_.size())); }

  struct Job {
    Slot* slot = nullptr;
    Shard* shard = nullptr;
    Phase phase = Phase::done;
    Index begin = 0, end = 0;
    RowFailure failure;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      if (!run_one(lock)) work_.wait(lock);
    }
  }

  /// Claims and does one job; false when there is none.
  bool run_one(std::unique_lock<std::mutex>& lock) {
    auto job = claim();
    if (!job.slot) return false;
    auto const generation = generation_.load(std::memory_order_relaxed);
    ++active_;
    lock.unlock();
    bool const complete = run(job, generation);
    lock.lock();
    --active_;
    if (generation != generation_.load(std::memory_order_relaxed)) {
      if (active_ == 0) idle_.notify_all();
    } else if (complete) {
      finish(job);
    }
    return true;
  }

  Job claim() noexcept {
    for (auto* slot : queue_) {
      for (auto& shard : slot->shards) {
        auto const total = shard.total();
        if (shard.claimed == total) continue;
        auto const begin = shard.claimed;
        shard.claimed = std::min(total, begin + run_length(total));
        return {slot, &shard, shard.phase, begin, shard.claimed, {}};
      }
    }
    return {};
  }
  /// Small samples are claimed in runs, and yet every worker gets some of each batch.
  [[nodiscard]] Index run_length(Index rows) const noexcept {
    return workers_ == 0 ? rows : std::max<Index>(1, rows / (4 * workers_));
  }

  /// False when it was broken off because the loader was started anew.
  bool run(Job& job, std::uint64_t generation) {
    auto& [slot, shard, phase, begin, end, failure] = job;
    auto& batch = slot->batches[static_cast<std::size_t>(shard->shard - split_.first)];
    auto row = begin;
    try {
      if (phase == Phase::plan || phase == Phase::finish) {
        row = -1;
        phase == Phase::plan ? shard->plan(collate_, slot->epoch, batch) : shard->finish(collate_, batch);
        return true;
      }
      auto const index_at = order_.in(slot->epoch);
      for (; row < end; ++row) {
        if (generation != generation_.load(std::memory_order_relaxed)) return false;
        if (phase == Phase::read) {
          auto const position = layout_.position(slot->step, shard->shard, row);
          shard->read(dataset_, row, position, index_at(position % static_cast<Index>(order_.size())));
        } else {
          shard->write(dataset_, collate_, batch, row);
        }
      }
    } catch (...) {
      failure = {std::current_exception(), row};
    }
    return true;
  }

  void finish(Job const& job) {
    auto& shard = *job.shard;
    shard.failure.merge(job.failure);
    shard.finished += job.end - job.begin;
    if (shard.finished != shard.total()) return;
    shard.advance();
    if (shard.phase == Phase::write) work_.notify_all();
    if (shard.phase == Phase::done && --job.slot->unfinished == 0) ready_.notify_all();
  }

  auto owner(Slot const* slot) noexcept {
    return std::find_if(slots_.begin(), slots_.end(), [&](auto const& each) { return each.get() == slot; });
  }

  /// Queues the next micro-steps until `most` are queued or no slot is free.
  void assign(std::size_t most) noexcept {
    while (!free_.empty() && queue_.size() < most && epoch_ < last_epoch_) {
      auto* const slot = free_.back();
      free_.pop_back();
      slot->begin(epoch_, step_, split_, layout_);
      queue_.push_back(slot);
      if (++step_ == layout_.steps()) advance_epoch();
    }
  }
  void advance_epoch() noexcept {
    ++epoch_;
    step_ = 0;
  }
  void recycle(Slot* slot) noexcept {
    free_.push_back(slot);
    if (workers_ == 0) return;
    assign(slots_.size());
    work_.notify_all();
  }

  /// Breaks off what is being made and waits for the workers to let go of it.
  void cancel(std::unique_lock<std::mutex>& lock) {
    generation_.fetch_add(1, std::memory_order_relaxed);
    queue_.clear();
    free_.clear();
    last_epoch_ = epoch_;  // nothing is left to queue
    idle_.wait(lock, [&] { return active_ == 0; });
  }

  [[noreturn]] void refuse_next() const {
    if (epoch_ < last_epoch_) {
      throw ConfigError("DataLoader: all " + std::to_string(slots_.size()) +
                        " batches of the ring are held; let one go before asking for the next, or raise `prefetch`");
    }
    throw ConfigError("DataLoader: no batch is left before epoch " + std::to_string(last_epoch_) +
                      ", where start(split, epoch, step, last_epoch) ends; call start again");
  }

  D const dataset_;
  O const order_;
  C const collate_;
  Index const batch_size_;
  int const workers_;
  Tail const tail_;

  mutable std::mutex mutex_;
  std::condition_variable work_, ready_, idle_;
  std::vector<std::shared_ptr<Slot>> slots_;
  std::vector<Slot*> queue_, free_;
  Split split_{0, 0, 1};
  EpochLayout layout_;
  Index epoch_ = 0, step_ = 0, last_epoch_ = 0;  // of the next micro-step to queue
  std::atomic<std::uint64_t> generation_{0};
  int active_ = 0;  // jobs outside the mutex
  bool stopped_ = false;
  double wait_seconds_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
