// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>  // for durations; including all of <chrono> is expensive to compile
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/loader/detail/batch_layout.hpp>
#include <lockstep/data/loader/detail/batch_maker.hpp>
#include <lockstep/data/loader/detail/loader_job.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>
#include <lockstep/data/loader/detail/loader_spans.hpp>
#include <lockstep/data/loader/loader_stats.hpp>
#include <lockstep/data/sampler/sampler.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns the message for a `next` that waits longer than its deadline: the current work of the first `threads`
/// workers.
template <class Source, class Workers, class Slot>
[[nodiscard, gnu::cold]] std::string deadline_message(Source const& dataset, Workers const& workers,
                                                      std::size_t threads, Slot const& slot, double deadline_seconds) {
  auto const now = Clock::seconds();
  auto const seconds = [](double s) { return std::to_string(static_cast<Index>(s * 1000)) + " ms"; };
  auto out = "DataLoader: no batch within " + seconds(deadline_seconds) + " for epoch " + std::to_string(slot.epoch) +
             ", step " + std::to_string(slot.step) + "; ";
  for (std::size_t i = 0; i < threads; ++i) {
    auto const& worker = *workers[i];
    out += "worker " + std::to_string(i);
    if (worker.phase == Phase::read || worker.phase == Phase::write) {
      out += std::string(worker.phase == Phase::read ? " reads " : " writes ") +
             name_of(dataset, worker.index.load(std::memory_order_relaxed)) + ", position " +
             std::to_string(worker.position.load(std::memory_order_relaxed)) + ", running for " +
             seconds(now - worker.since) + "; ";
    } else {
      out += worker.phase == Phase::done ? " has nothing to do; " : " lays out a batch; ";
    }
  }
  return out + "call `next` again to continue waiting, or raise deadline_seconds if samples are that slow";
}

/// Returns whether a thread of this process waits for a lock: for a mutex or a lock on a file. False if the system does
/// not say.
[[nodiscard, gnu::cold]] inline bool waits_for_lock(int thread) {
  char text[64] = {};  // no memory is allocated: a step allocates none
  std::snprintf(text, sizeof text, "/proc/self/task/%d/syscall", thread);
  int const file = ::open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  auto const size = ::read(file, text, sizeof text - 1);  // "running", or the number of the call that it is in
  ::close(file);
  if (size <= 0 || text[0] < '0' || text[0] > '9') return false;
  auto const call = std::strtol(text, nullptr, 10);
  return call == SYS_futex || call == SYS_flock || call == SYS_fcntl;
}

/// Scheduler of a DataLoader. Slots wait in `queue_` in the order of delivery. Workers claim runs of rows from the
/// front of the queue first. A slow sample therefore delays only its own batch, and the next batch is always closest to
/// ready. One mutex guards the bookkeeping; samples are read and written without it.
template <class Source, class OrderType, class CollateType>
class LoaderCore {
 public:
  using Slot = LoaderSlot<Source, CollateType, LayoutOf<OrderType>>;
  using Shard = LoaderShard<Source, CollateType>;

  [[gnu::cold]] LoaderCore(Source dataset, OrderType order, CollateType collate, DataLoaderOptions const& options)
      : maker_{std::move(dataset), std::move(order), std::move(collate), options},
        slots_(static_cast<std::size_t>(std::max(options.prefetch, 1) + 1)) {
    queue_.reserve(slots_.size());
    free_.reserve(slots_.size());
    auto const most = static_cast<std::size_t>(std::max({options.workers, options.max_workers, 1}));
    workers_.reserve(most);
    threads_.reserve(most);
  }
  ~LoaderCore() { stop(); }
  LoaderCore(LoaderCore const&) = delete;
  LoaderCore& operator=(LoaderCore const&) = delete;

  [[nodiscard]] Source const& dataset() const noexcept { return maker_.dataset; }
  [[nodiscard]] OrderType const& order() const noexcept { return maker_.order; }
  [[nodiscard]] DataLoaderOptions const& options() const noexcept { return maker_.options; }
  [[nodiscard]] LayoutOf<OrderType> layout(Split const& split, Index epoch, Tail tail, Index first = 0) const noexcept {
    return layout_of(order(), options().batch_size, tail, split, epoch, first);
  }

  /// Sets the memory resource of batches from the next start on.
  void use(memory::AnyHostResource memory) {
    std::lock_guard lock(mutex_);
    memory_ = memory;
  }

  /// Records workers' jobs and the number of ready batches in `timeline`; null stops recording.
  void trace(Timeline* timeline) noexcept {
    std::lock_guard lock(mutex_);
    timeline_ = timeline;
  }

  /// Makes `next` look at workers while it waits.
  void observe() noexcept {
    std::lock_guard lock(mutex_);
    observes_ = true;
  }

  /// Starts delivery at a micro-step of an epoch whose micro-steps are counted from the position `first`.
  [[gnu::cold]] void start(Split const& split, Index epoch, Index first, Index step, Index last_epoch, Replay replay,
                           Tail tail, OnFailure on_failure) {
    std::unique_lock lock(mutex_);
    cancel(lock);
    maker_.on_failure = on_failure;
    while (static_cast<int>(threads_.size()) < options().workers) add_worker();
    if (workers_.empty()) workers_.push_back(std::make_unique<Worker>(dataset()));
    for (auto& slot : slots_) {
      // The slot that the user still holds is replaced, not reused.
      bool const fits = slot && slot->shards.size() == static_cast<std::size_t>(split.count) && slot->memory == memory_;
      if (!fits || slot->held) slot = std::make_shared<Slot>(max_rows(), split.count, memory_);
      slot->is_complete = false;
      slot->expected_bytes = 0;
      free_.push_back(slot.get());
    }
    split_ = split;
    replay_ = replay;
    tail_ = tail;
    layout_ = layout(split, epoch, tail, first);
    if constexpr (SequentialAccess<Source>) dataset().rewind(epoch, layout_.begin(step));
    epoch_ = epoch;
    step_ = step;
    last_epoch_ = layout(split, epoch, tail).steps() == 0 ? epoch : last_epoch;
    if (step_ >= layout_.steps()) advance_epoch();
    if (started_ == 0) started_ = Clock::seconds();
    if (!threads_.empty()) assign(slots_.size());
    work_.notify_all();
  }

  /// Returns the next micro-step, ready. @throws DataError of the failed sample; later micro-steps are unaffected
  std::shared_ptr<Slot> next() {
    std::unique_lock lock(mutex_);
    if (queue_.empty()) {
      assign(1);
      work_.notify_all();
    }
    if (queue_.empty()) refuse_next();
    auto const ready = std::count_if(queue_.begin(), queue_.end(), [](auto const* each) { return each->ready(); });
    stats_.ready += ready;
    if (timeline_) timeline_->add(queue_level(ready));
    if (!deliverable()) {
      auto const begin = Clock::seconds();
      if (!threads_.empty()) {
        if (static_cast<int>(threads_.size()) < options().max_workers && all_busy()) try_add_worker();
        wait_ready(lock);
      } else {
        while (!deliverable()) run_one(lock, *workers_.front());
      }
      stats_.wait_seconds += Clock::seconds() - begin;
    }
    auto* const slot = deliverable();
    queue_.erase(std::find(queue_.begin(), queue_.end(), slot));
    if (auto const* shard = slot->failed()) {
      struct Recycle {
        LoaderCore& core;
        Slot* slot;
        ~Recycle() { core.recycle(slot); }
      } recycle_after_throw{*this, slot};
      slot->rethrow(dataset(), *shard);
    }
    slot->held = slot->is_complete = true;
    ++stats_.delivered;
    for (auto const& shard : slot->shards) stats_.samples += shard.rows;
    return *owner(slot);
  }

  void release(Slot* slot) noexcept {
    std::lock_guard lock(mutex_);
    slot->held = false;
    if (owner(slot) != slots_.end()) recycle(slot);  // a later start may have replaced it
  }

  /// Ends the threads; held batches stay valid.
  [[gnu::cold]] void stop() noexcept {
    std::vector<std::thread> threads;
    {
      std::unique_lock lock(mutex_);
      cancel(lock);
      stopped_ = true;
      threads.swap(threads_);  // under the lock: other threads may release their batches
      work_.notify_all();
    }
    for (auto& thread : threads) thread.join();
  }

  [[nodiscard, gnu::cold]] LoaderStats stats() const {
    std::lock_guard lock(mutex_);
    auto out = stats_;
    out.elapsed_seconds = started_ == 0 ? 0 : Clock::seconds() - started_;
    out.slots = static_cast<Index>(slots_.size());
    out.workers = static_cast<int>(threads_.size());
    for (auto const& worker : workers_)
      if (worker->thread != 0) out.queued_seconds += queued_seconds(worker->thread);
    out.bytes = ring_bytes();
    return out;
  }

 private:
  using Job = LoaderJob<Source, CollateType, LayoutOf<OrderType>>;
  using Worker = LoaderWorker<Source>;

  /// Maximum rows of one batch: an epoch may be smaller than the batch size.
  [[nodiscard]] Index max_rows() const noexcept {
    return std::min(options().batch_size, static_cast<Index>(order().size()));
  }

  [[gnu::cold]] void add_worker() {
    workers_.push_back(std::make_unique<Worker>(dataset()));
    try {
      threads_.reserve(threads_.size() + 1);
      threads_.push_back(start_thread(
          "DataLoader", "worker " + std::to_string(threads_.size() + 1) + " of " + std::to_string(options().workers),
          [this, &worker = *workers_.back()] { work(worker); }));
    } catch (...) {
      workers_.pop_back();
      throw;
    }
  }
  void try_add_worker() {
    try {
      add_worker();
    } catch (ConfigError const&) {  // the existing workers suffice
    }
  }
  [[nodiscard]] bool all_busy() const noexcept {
    return std::all_of(workers_.begin(), workers_.end(), [](auto const& each) { return each->phase != Phase::done; });
  }

  void work(Worker& worker) {
    std::unique_lock lock(mutex_);
    worker.thread = static_cast<int>(::gettid());
    while (!stopped_) {
      if (run_one(lock, worker)) continue;
      auto const begin = Clock::seconds();
      work_.wait(lock);
      stats_.idle_seconds += Clock::seconds() - begin;
    }
  }

  /// Claims and does one job; returns false if there is no job.
  bool run_one(std::unique_lock<std::mutex>& lock, Worker& worker) {
    auto job = claim();
    if (!job.slot) return false;
    auto const generation = generation_.load(std::memory_order_relaxed);
    worker.phase = job.phase;
    worker.since = Clock::seconds();
    ++active_;
    lock.unlock();
    bool const complete = maker_.run(job, worker, generation_, generation);
    lock.lock();
    --active_;
    auto const now = Clock::seconds();
    seconds_of(job.phase) += now - worker.since;
    if (timeline_) timeline_->add(span_of(job, worker, now, workers_));
    worker.phase = Phase::done;
    if (generation != generation_.load(std::memory_order_relaxed)) {
      if (active_ == 0) idle_.notify_all();
    } else if (complete) {
      finish(job);
    }
    return true;
  }
  [[nodiscard]] double& seconds_of(Phase phase) noexcept {
    return phase == Phase::read    ? stats_.read_seconds
           : phase == Phase::plan  ? stats_.plan_seconds
           : phase == Phase::write ? stats_.write_seconds
                                   : stats_.finish_seconds;
  }

  Job claim() noexcept {
    for (auto* slot : queue_) {
      for (; slot->first_claimable != slot->shards.size(); ++slot->first_claimable) {
        auto& shard = slot->shards[slot->first_claimable];
        auto const total = shard.total();
        if (shard.claimed == total) continue;
        auto const begin = shard.claimed;
        shard.claimed = std::min(total, begin + run_length(total));
        Job job;
        job.slot = slot;
        job.shard = &shard;
        job.phase = shard.phase;
        job.begin = begin;
        job.end = shard.claimed;
        return job;
      }
    }
    return {};
  }
  /// Returns the number of rows to claim at once: several small samples, but some of each batch for every worker.
  [[nodiscard]] Index run_length(Index rows) const noexcept {
    auto const workers = static_cast<Index>(threads_.size());
    return workers == 0 ? rows : std::max<Index>(1, rows / (4 * workers));
  }

  void finish(Job& job) {
    auto& shard = *job.shard;
    shard.failure.merge(job.failure);
    shard.failed.insert(shard.failed.end(), job.failed.begin(), job.failed.end());
    shard.missing += job.missing;
    stats_.substituted += job.substituted;
    if (!job.last_failure.empty()) stats_.last_failure = std::move(job.last_failure);
    shard.finished += job.end - job.begin;
    if (job.phase == Phase::plan || job.phase == Phase::finish) count_bytes(job);
    if (shard.finished != shard.total()) return;
    if (shard.failed.empty() || shard.failure.error) {
      shard.advance();
    } else {
      (maker_.on_failure == OnFailure::skip ? stats_.skipped : stats_.substituted) += maker_.handle_failed_rows(job);
    }
    job.slot->reopen(shard);
    if (shard.phase == Phase::write || shard.restarts > 0) work_.notify_all();
    if (shard.phase == Phase::done && --job.slot->unfinished == 0) ready_.notify_all();
  }
  auto owner(Slot const* slot) noexcept {
    return std::find_if(slots_.begin(), slots_.end(), [&](auto const& each) { return each.get() == slot; });
  }

  /// Returns the slot that `next` would return, or null while it is being made.
  [[nodiscard]] Slot* deliverable() const noexcept {
    auto* const front = queue_.front();
    if (options().delivery == Delivery::ordered || front->ready()) return front->ready() ? front : nullptr;
    auto const found = std::find_if(queue_.begin(), queue_.end(), [&](auto const* each) {
      return each->ready() && each->epoch == front->epoch;  // an epoch ends before the next begins
    });
    return found == queue_.end() ? nullptr : *found;
  }
  void wait_ready(std::unique_lock<std::mutex>& lock) {
    auto const is_ready = [&] { return deliverable() != nullptr; };
    auto const seconds = options().deadline_seconds;
    bool const endless = seconds == 0 || seconds >= 1e9;  // beyond, clocks overflow
    if (endless && !observes_) return ready_.wait(lock, is_ready);
    auto const began = Clock::seconds();
    for (auto pause = observes_ ? shortest_pause : INFINITY; !is_ready(); pause = std::min(2 * pause, longest_pause)) {
      auto const left = endless ? longest_pause : seconds - (Clock::seconds() - began);
      if (left <= 0) throw DataError(deadline_message(dataset(), workers_, threads_.size(), *queue_.front(), seconds));
      if (ready_.wait_for(lock, std::chrono::duration<double>(std::min(pause, left)), is_ready)) return;
      if (observes_) look(lock);
    }
  }
  /// Counts the workers that are reading, and those of them that wait for a lock, for LoaderStats.
  [[gnu::cold]] void look(std::unique_lock<std::mutex>& lock) {
    struct Look {
      Worker const* worker;
      double since;
      bool locked;
    };
    std::array<Look, 16> looks{};
    std::size_t count = 0;
    for (auto const& worker : workers_)
      if (worker->phase == Phase::read && worker->thread != 0 && count < looks.size())
        looks[count++] = {worker.get(), worker->since, false};
    std::span const taken(looks.data(), count);
    lock.unlock();  // else workers would wait for it
    for (auto& each : taken) each.locked = waits_for_lock(each.worker->thread);
    lock.lock();
    for (auto const& each : taken) {  // a worker that has finished its job may have waited for the next one
      if (each.worker->phase != Phase::read || each.worker->since != each.since) continue;
      ++stats_.looks;
      stats_.locked += each.locked ? 1 : 0;
    }
  }
  /// Queues the next micro-steps until `most` are queued, no slot is free, or the ring would exceed its budget.
  void assign(std::size_t most) noexcept {
    while (!free_.empty() && queue_.size() < most && epoch_ < last_epoch_) {
      if (!queue_.empty() && !within_budget()) return;
      auto* const slot = free_.back();
      free_.pop_back();
      slot->expected_bytes = largest_bytes_;
      slot->begin(epoch_, step_, split_, layout_, replay_ == Replay::cached);
      queue_.push_back(slot);
      if (++step_ == layout_.steps()) advance_epoch();
    }
  }
  void advance_epoch() noexcept {
    ++epoch_;
    step_ = 0;
    layout_ = layout(split_, epoch_, tail_);
  }
  void recycle(Slot* slot) noexcept {
    slot->expected_bytes = 0;
    if (options().budget_bytes > 0 && ring_bytes() > std::max(options().budget_bytes, slot->bytes)) {
      for (auto& shard : slot->shards) {
        shard.slab = Slab(slot->memory);
        shard.bytes = 0;
      }
      slot->bytes = 0;
      slot->is_complete = false;
    }
    free_.push_back(slot);
    if (threads_.empty()) return;
    assign(slots_.size());
    work_.notify_all();
  }

  [[nodiscard]] Index ring_bytes() const noexcept {
    Index bytes = 0;
    for (auto const& slot : slots_) bytes += slot ? std::max(slot->bytes, slot->expected_bytes) : 0;
    return bytes;
  }
  /// Whether the budget allows the next free slot to grow to the largest size so far.
  [[nodiscard]] bool within_budget() const noexcept {
    if (options().budget_bytes == 0) return true;
    if (largest_bytes_ == 0) return false;  // unknown before the first batch
    auto const growth = std::max<Index>(largest_bytes_ - free_.back()->bytes, 0);
    return ring_bytes() + growth <= options().budget_bytes;
  }
  void count_bytes(Job const& job) {
    auto& slot = *job.slot;
    auto const bytes = static_cast<Index>(job.shard->slab.peak_bytes());
    slot.bytes += bytes - job.shard->bytes;
    job.shard->bytes = bytes;
    largest_bytes_ = std::max(largest_bytes_, slot.bytes);
    if (options().budget_bytes == 0 || threads_.empty()) return;
    assign(slots_.size());
    work_.notify_all();
  }

  /// Cancels unfinished batches and waits until no worker uses them.
  [[gnu::cold]] void cancel(std::unique_lock<std::mutex>& lock) {
    generation_.fetch_add(1, std::memory_order_relaxed);
    queue_.clear();
    last_epoch_ = epoch_;  // nothing is left to queue
    idle_.wait(lock, [&] { return active_ == 0; });
    free_.clear();  // not earlier: other threads may have released batches during the wait
  }

  [[noreturn, gnu::cold]] void refuse_next() const {
    if (epoch_ < last_epoch_) {
      throw ConfigError("DataLoader: all " + std::to_string(slots_.size()) +
                        " batches of the ring are held; release one before you call `next`, or raise `prefetch`");
    }
    throw ConfigError("DataLoader: no batch is left of epochs with " + std::to_string(samples_of(order())) +
                      " samples before epoch " + std::to_string(last_epoch_) +
                      ", the end given to start; an epoch has " +
                      std::to_string(layout(split_, epoch_, tail_).steps()) +
                      " steps of this split, see steps(split); call start again");
  }

  static constexpr double shortest_pause = 0.5e-3, longest_pause = 16e-3;  // seconds between looks at the workers

  BatchMaker<Source, OrderType, CollateType> maker_;  // changes only while no worker uses it

  mutable std::mutex mutex_;
  std::condition_variable work_, ready_, idle_;
  std::vector<std::shared_ptr<Slot>> slots_;
  std::vector<Slot*> queue_, free_;
  memory::AnyHostResource memory_;
  Split split_{0, 0, 1};
  Replay replay_ = Replay::none;
  Tail tail_ = Tail::exact;
  LayoutOf<OrderType> layout_;                   // of epoch_
  Index epoch_ = 0, step_ = 0, last_epoch_ = 0;  // of the next micro-step to queue
  std::atomic<std::uint64_t> generation_{0};
  int active_ = 0;  // jobs that run without the mutex
  bool stopped_ = false, observes_ = false;
  Index largest_bytes_ = 0;  // of a slot
  double started_ = 0;
  LoaderStats stats_;
  Timeline* timeline_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

}}}  // namespace lockstep::data::detail
