// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/data/detail/read_sample.hpp>
#include <lockstep/data/loader/detail/loader_scheduler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

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

[[nodiscard]] constexpr char const* name_of(Phase phase) noexcept {
  switch (phase) {
    case Phase::read:
      return "read";
    case Phase::plan:
      return "plan";
    case Phase::write:
      return "write";
    case Phase::finish:
      return "finish";
    case Phase::done:
      break;
  }
  return "";
}

LOCKSTEP_COLD_INLINE LoaderScheduler::LoaderScheduler(DataLoaderOptions const& options)
    : options_(options), slots_(static_cast<std::size_t>(std::max(options.prefetch, 1) + 1)) {
  queue_.reserve(slots_.size());
  free_.reserve(slots_.size());
  auto const most = static_cast<std::size_t>(std::max({options.workers, options.max_workers, 1}));
  workers_.reserve(most);
  threads_.reserve(most);
}

LOCKSTEP_COLD_INLINE LoaderScheduler::~LoaderScheduler() = default;

LOCKSTEP_COLD_INLINE void LoaderScheduler::use(memory::AnyHostResource memory) {
  std::lock_guard lock(mutex_);
  memory_ = memory;
}

LOCKSTEP_COLD_INLINE void LoaderScheduler::trace(Timeline* timeline) noexcept {
  std::lock_guard lock(mutex_);
  timeline_ = timeline;
}

LOCKSTEP_COLD_INLINE void LoaderScheduler::observe() noexcept {
  std::lock_guard lock(mutex_);
  observes_ = true;
}

LOCKSTEP_INLINE void LoaderScheduler::start(Split const& split, Index epoch, Index first, Index step, Index last_epoch,
                                            Replay replay, Tail tail, OnFailure on_failure) {
  std::unique_lock lock(mutex_);
  cancel(lock);
  on_failure_ = on_failure;
  set_on_failure(on_failure);
  while (static_cast<int>(threads_.size()) < options_.workers) add_worker();
  if (workers_.empty()) workers_.push_back(make_worker());
  for (auto& slot : slots_) {
    // The slot that the user still holds is replaced, not reused.
    bool const fits = slot && slot->shards.size() == static_cast<std::size_t>(split.count) && slot->memory == memory_;
    if (!fits || slot->held) slot = make_slot(split.count, memory_);
    slot->is_complete = false;
    slot->expected_bytes = 0;
    free_.push_back(slot.get());
  }
  split_ = split;
  replay_ = replay;
  tail_ = tail;
  steps_ = open_epoch(split, epoch, tail, first);
  rewind(epoch, step);
  epoch_ = epoch;
  step_ = step;
  last_epoch_ = steps_of(split, epoch, tail) == 0 ? epoch : last_epoch;
  if (step_ >= steps_) advance_epoch();
  if (started_ == 0) started_ = Clock::seconds();
  if (!threads_.empty()) assign(slots_.size());
  work_.notify_all();
}

LOCKSTEP_INLINE std::shared_ptr<SlotProgress> LoaderScheduler::next() {
  std::unique_lock lock(mutex_);
  if (queue_.empty()) {
    assign(1);
    work_.notify_all();
  }
  if (queue_.empty()) refuse_next();
  auto const ready = std::count_if(queue_.begin(), queue_.end(), [](auto const* each) { return each->ready(); });
  stats_.ready += ready;
  if (timeline_) {
    auto const now = Clock::seconds();
    timeline_->add({.name = "batches ready", .begin = now, .end = now, .amount = ready, .kind = Span::Kind::level});
  }
  if (!deliverable()) {
    auto const begin = Clock::seconds();
    if (!threads_.empty()) {
      if (static_cast<int>(threads_.size()) < options_.max_workers && all_busy()) try_add_worker();
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
      LoaderScheduler& scheduler;
      SlotProgress* slot;
      ~Recycle() { scheduler.recycle(slot); }
    } recycle_after_throw{*this, slot};  // NOLINT(clang-analyzer-deadcode.DeadStores): its destructor acts
    rethrow(*slot, *shard);
  }
  slot->held = slot->is_complete = true;
  ++stats_.delivered;
  stats_.samples += slot->rows();
  return *owner(slot);
}

LOCKSTEP_INLINE void LoaderScheduler::release(SlotProgress* slot) noexcept {
  std::lock_guard lock(mutex_);
  slot->held = false;
  if (owner(slot) != slots_.end()) recycle(slot);  // a later start may have replaced it
}

LOCKSTEP_INLINE void LoaderScheduler::stop() noexcept {
  std::vector<std::thread> threads;
  {
    std::unique_lock lock(mutex_);
    cancel(lock);
    stopped_ = true;
    threads.swap(threads_);  // under the lock: other threads may release their batches
    work_.notify_all();
  }
  for (auto& thread : threads) thread.join();
  std::lock_guard lock(mutex_);
  workers_.clear();  // their readers may refer to the dataset, which the derived class destroys first
}

LOCKSTEP_INLINE LoaderStats LoaderScheduler::stats() const {
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

LOCKSTEP_INLINE std::string LoaderScheduler::name_at(SlotProgress const& slot, Index position) const {
  for (auto const* shard : slot.shards)
    for (std::size_t k = 0; k < static_cast<std::size_t>(shard->rows); ++k)
      if (shard->positions[k] == position) return name_of_sample(shard->indices[k]);
  return {};
}

LOCKSTEP_INLINE void LoaderScheduler::add_worker() {
  workers_.push_back(make_worker());
  try {
    threads_.reserve(threads_.size() + 1);
    threads_.push_back(start_thread(
        "DataLoader", "worker " + std::to_string(threads_.size() + 1) + " of " + std::to_string(options_.workers),
        [this, &worker = *workers_.back()] { work(worker); }));
  } catch (...) {
    workers_.pop_back();
    throw;
  }
}

LOCKSTEP_INLINE void LoaderScheduler::try_add_worker() {
  try {
    add_worker();
  } catch (ConfigError const&) {  // the existing workers suffice
  }
}

LOCKSTEP_INLINE bool LoaderScheduler::all_busy() const noexcept {
  return std::all_of(workers_.begin(), workers_.end(), [](auto const& each) { return each->phase != Phase::done; });
}

LOCKSTEP_INLINE void LoaderScheduler::work(WorkerProgress& worker) {
  std::unique_lock lock(mutex_);
  worker.thread = ::gettid();
  while (!stopped_) {
    if (run_one(lock, worker)) continue;
    auto const begin = Clock::seconds();
    work_.wait(lock);
    stats_.idle_seconds += Clock::seconds() - begin;
  }
}

/// Claims and does one job; returns false if there is no job.
LOCKSTEP_INLINE bool LoaderScheduler::run_one(std::unique_lock<std::mutex>& lock, WorkerProgress& worker) {
  auto job = claim();
  if (!job.slot) return false;
  auto const generation = generation_.load(std::memory_order_relaxed);
  worker.phase = job.phase;
  worker.index.store(-1, std::memory_order_relaxed);
  worker.since = Clock::seconds();
  ++active_;
  lock.unlock();
  bool const complete = run(job, worker, generation_, generation);
  lock.lock();
  --active_;
  auto const now = Clock::seconds();
  seconds_of(job.phase) += now - worker.since;
  if (timeline_) {
    auto const place =
        std::find_if(workers_.begin(), workers_.end(), [&](auto const& each) { return each.get() == &worker; });
    timeline_->add({.name = name_of(job.phase),
                    .begin = worker.since,
                    .end = now,
                    .number = job.slot->step,
                    .amount = job.end - job.begin,
                    .first = static_cast<int>(place - workers_.begin()),
                    .kind = Span::Kind::batch});
  }
  worker.phase = Phase::done;
  if (generation != generation_.load(std::memory_order_relaxed)) {
    if (active_ == 0) idle_.notify_all();
  } else if (complete) {
    finish(job);
  }
  return true;
}

LOCKSTEP_INLINE double& LoaderScheduler::seconds_of(Phase phase) noexcept {
  return phase == Phase::read    ? stats_.read_seconds
         : phase == Phase::plan  ? stats_.plan_seconds
         : phase == Phase::write ? stats_.write_seconds
                                 : stats_.finish_seconds;
}

LOCKSTEP_INLINE LoaderJob LoaderScheduler::claim() noexcept {
  for (auto* slot : queue_) {
    for (; slot->first_claimable != slot->shards.size(); ++slot->first_claimable) {
      auto& shard = *slot->shards[slot->first_claimable];
      auto const total = shard.total();
      if (shard.claimed == total) continue;
      auto const begin = shard.claimed;
      shard.claimed = std::min(total, begin + run_length(total));
      LoaderJob job;
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
LOCKSTEP_INLINE Index LoaderScheduler::run_length(Index rows) const noexcept {
  auto const workers = static_cast<Index>(threads_.size());
  return workers == 0 ? rows : std::max<Index>(1, rows / (4 * workers));
}

LOCKSTEP_INLINE void LoaderScheduler::finish(LoaderJob& job) {
  auto& shard = *job.shard;
  shard.failure.merge(job.failure);
  shard.failed.insert(shard.failed.end(), job.failed.begin(), job.failed.end());
  shard.missing += job.missing;
  stats_.substituted += job.substituted;
  for (auto const& failure : job.failures) count(failure);
  shard.finished += job.end - job.begin;
  if (job.phase == Phase::plan || job.phase == Phase::finish) count_bytes(job);
  if (shard.finished != shard.total()) return;
  if (shard.failed.empty() || shard.failure.error) {
    shard.advance();
  } else {
    (on_failure_ == OnFailure::skip ? stats_.skipped : stats_.substituted) += handle_failed_rows(job);
  }
  // The shard may have rows to claim again.
  job.slot->first_claimable = std::min(job.slot->first_claimable, job.slot->place(shard));
  if (shard.phase == Phase::write || shard.restarts > 0) work_.notify_all();
  if (shard.phase == Phase::done && --job.slot->unfinished == 0) ready_.notify_all();
}

LOCKSTEP_INLINE void LoaderScheduler::count(SampleFailure const& failure) {
  stats_.last_failure = failure.reason;
  auto& known = stats_.failures;
  bool const is_new =
      std::none_of(known.begin(), known.end(), [&](auto const& each) { return each.sample == failure.sample; });
  if (is_new && known.size() < LoaderStats::most_failures) known.push_back(failure);
}

LOCKSTEP_INLINE std::vector<std::shared_ptr<SlotProgress>>::iterator LoaderScheduler::owner(
    SlotProgress const* slot) noexcept {
  return std::find_if(slots_.begin(), slots_.end(), [&](auto const& each) { return each.get() == slot; });
}

/// Returns the slot that `next` would return, or null while it is being made.
LOCKSTEP_INLINE SlotProgress* LoaderScheduler::deliverable() const noexcept {
  auto* const front = queue_.front();
  if (options_.delivery == Delivery::ordered || front->ready()) return front->ready() ? front : nullptr;
  auto const found = std::find_if(queue_.begin(), queue_.end(), [&](auto const* each) {
    return each->ready() && each->epoch == front->epoch;  // an epoch ends before the next begins
  });
  return found == queue_.end() ? nullptr : *found;
}

LOCKSTEP_INLINE void LoaderScheduler::wait_ready(std::unique_lock<std::mutex>& lock) {
  auto const is_ready = [&] { return deliverable() != nullptr; };
  auto const seconds = options_.deadline_seconds;
  bool const endless = seconds == 0 || seconds >= 1e9;  // beyond, clocks overflow
  if (endless && !observes_) return ready_.wait(lock, is_ready);
  auto const began = Clock::seconds();
  for (auto pause = observes_ ? shortest_pause : std::numeric_limits<double>::infinity(); !is_ready();
       pause = std::min(2 * pause, longest_pause)) {
    auto const left = endless ? longest_pause : seconds - (Clock::seconds() - began);
    if (left <= 0) throw DataError(deadline_message(*queue_.front()));
    if (ready_.wait_for(lock, std::chrono::duration<double>(std::min(pause, left)), is_ready)) return;
    if (observes_) look(lock);
  }
}

/// Returns the message for a `next` that waits longer than its deadline: the current work of the threads.
LOCKSTEP_INLINE std::string LoaderScheduler::deadline_message(SlotProgress const& slot) const {
  auto const now = Clock::seconds();
  auto const seconds = [](double s) { return std::to_string(static_cast<Index>(s * 1000)) + " ms"; };
  auto out = "DataLoader: no batch within " + seconds(options_.deadline_seconds) + " for epoch " +
             std::to_string(slot.epoch) + ", step " + std::to_string(slot.step) + "; ";
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    auto const& worker = *workers_[i];
    out += "worker " + std::to_string(i);
    if (worker.phase == Phase::done) {
      out += " has nothing to do; ";
      continue;
    }
    auto const index = worker.index.load(std::memory_order_relaxed);
    out += index < 0 ? std::string(worker.phase == Phase::read ? " asks the sampler for samples" : " lays out a batch")
                     : (worker.phase == Phase::read ? " reads " : " writes ") + name_of_sample(index) + ", position " +
                           std::to_string(worker.position.load(std::memory_order_relaxed));
    out += ", running for " + seconds(now - worker.since) + "; ";
  }
  return out + "call `next` again to continue waiting, or raise deadline_seconds if samples are that slow";
}

/// Counts the workers that are reading, and those of them that wait for a lock, for LoaderStats.
LOCKSTEP_INLINE void LoaderScheduler::look(std::unique_lock<std::mutex>& lock) {
  struct Look {
    WorkerProgress const* worker;
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
LOCKSTEP_INLINE void LoaderScheduler::assign(std::size_t most) noexcept {
  while (!free_.empty() && queue_.size() < most && epoch_ < last_epoch_) {
    if (!queue_.empty() && !within_budget()) return;
    auto* const slot = free_.back();
    free_.pop_back();
    slot->expected_bytes = largest_bytes_;
    begin(*slot);
    queue_.push_back(slot);
    if (++step_ == steps_) advance_epoch();
  }
}

/// Makes the slot the next micro-step.
LOCKSTEP_INLINE void LoaderScheduler::begin(SlotProgress& slot) noexcept {
  slot.split = split_;
  slot.epoch = epoch_;
  slot.step = step_;
  slot.steps = steps_;
  slot.end = end_of(step_);
  if (replay_ == Replay::cached && slot.is_complete) return;
  slot.is_complete = false;
  slot.unfinished = split_.count;
  slot.first_claimable = 0;
  for (int i = 0; i < split_.count; ++i) {
    auto const shard = split_.first + i;
    slot.shards[static_cast<std::size_t>(i)]->begin(shard, rows_of(step_, shard));
  }
}

LOCKSTEP_INLINE void LoaderScheduler::advance_epoch() noexcept {
  ++epoch_;
  step_ = 0;
  steps_ = open_epoch(split_, epoch_, tail_, 0);
}

LOCKSTEP_INLINE void LoaderScheduler::recycle(SlotProgress* slot) noexcept {
  slot->expected_bytes = 0;
  if (options_.budget_bytes > 0 && ring_bytes() > std::max(options_.budget_bytes, slot->bytes)) {
    for (auto* shard : slot->shards) {
      shard->slab = Slab(slot->memory);
      shard->bytes = 0;
    }
    slot->bytes = 0;
    slot->is_complete = false;
  }
  free_.push_back(slot);
  if (threads_.empty()) return;
  assign(slots_.size());
  work_.notify_all();
}

LOCKSTEP_INLINE Index LoaderScheduler::ring_bytes() const noexcept {
  Index bytes = 0;
  for (auto const& slot : slots_) bytes += slot ? std::max(slot->bytes, slot->expected_bytes) : 0;
  return bytes;
}

/// Whether the budget allows the next free slot to grow to the largest size so far.
LOCKSTEP_INLINE bool LoaderScheduler::within_budget() const noexcept {
  if (options_.budget_bytes == 0) return true;
  if (largest_bytes_ == 0) return false;  // unknown before the first batch
  auto const growth = std::max<Index>(largest_bytes_ - free_.back()->bytes, 0);
  return ring_bytes() + growth <= options_.budget_bytes;
}

LOCKSTEP_INLINE void LoaderScheduler::count_bytes(LoaderJob const& job) {
  auto& slot = *job.slot;
  auto const bytes = static_cast<Index>(job.shard->slab.peak_bytes());
  slot.bytes += bytes - job.shard->bytes;
  job.shard->bytes = bytes;
  largest_bytes_ = std::max(largest_bytes_, slot.bytes);
  if (options_.budget_bytes == 0 || threads_.empty()) return;
  assign(slots_.size());
  work_.notify_all();
}

/// Cancels unfinished batches and waits until no worker uses them.
LOCKSTEP_INLINE void LoaderScheduler::cancel(std::unique_lock<std::mutex>& lock) {
  generation_.fetch_add(1, std::memory_order_relaxed);
  queue_.clear();
  last_epoch_ = epoch_;  // nothing is left to queue
  idle_.wait(lock, [&] { return active_ == 0; });
  free_.clear();  // not earlier: other threads may have released batches during the wait
}

LOCKSTEP_INLINE void LoaderScheduler::refuse_next() const {
  if (epoch_ < last_epoch_) {
    throw ConfigError("DataLoader: all " + std::to_string(slots_.size()) +
                      " batches of the ring are held; release one before you call `next`, or raise `prefetch`");
  }
  throw ConfigError("DataLoader: no batch is left of epochs with " + std::to_string(samples()) +
                    " samples before epoch " + std::to_string(last_epoch_) + ", the end given to start; an epoch has " +
                    std::to_string(steps_of(split_, epoch_, tail_)) +
                    " steps of this split, see steps(split); call start again");
}

/// @throws DataError that names the sample, with the original nested
LOCKSTEP_INLINE void LoaderScheduler::rethrow(SlotProgress const& slot, ShardProgress const& shard) const {
  auto const row = shard.failure.row;
  auto const at = "epoch " + std::to_string(slot.epoch) + ", step " + std::to_string(slot.step);
  auto const k = static_cast<std::size_t>(std::max<Index>(row, 0));
  auto const who = row < 0 ? "DataLoader: the batch of " + at
                           : "DataLoader: " + name_of_sample(shard.indices[k]) + " (position " +
                                 std::to_string(shard.positions[k]) + " of " + at + ")";
  rethrow_as_failure_of(
      who, shard.failure.error,
      shard.failure.may_skip ? "; to train without such samples, set on_failure (--on-failure) to skip" : "");
}

}}}  // namespace lockstep::data::detail
