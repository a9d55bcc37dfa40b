// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <lockstep/core/timeline.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/loader/detail/loader_job.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>
#include <lockstep/data/loader/loader_stats.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Scheduler of a DataLoader. Slots wait in `queue_` in the order of delivery. Workers claim runs of rows from the
/// front of the queue first. A slow sample therefore delays only its own batch, and the next batch is always closest to
/// ready. One mutex guards the bookkeeping; samples are read and written without it. Depends on no type of the user:
/// LoaderCore has the dataset, the order and the collate.
class LoaderScheduler {
 public:
  explicit LoaderScheduler(DataLoaderOptions const& options);
  LoaderScheduler(LoaderScheduler const&) = delete;
  LoaderScheduler& operator=(LoaderScheduler const&) = delete;

  [[nodiscard]] DataLoaderOptions const& options() const noexcept { return options_; }
  [[nodiscard]] virtual std::string name_of_sample(Index index) const = 0;
  /// Returns the number of micro-steps of an epoch.
  [[nodiscard]] virtual Index steps_of(Split const& split, Index epoch, Tail tail) const noexcept = 0;
  /// Returns the number of samples in an epoch.
  [[nodiscard]] virtual Index samples() const = 0;

  /// Sets the memory resource of batches from the next start on.
  void use(memory::AnyHostResource memory);
  /// Records workers' jobs and the number of ready batches in `timeline`; null stops recording.
  void trace(Timeline* timeline) noexcept;
  /// Makes `next` look at workers while it waits.
  void observe() noexcept;

  /// Starts delivery at a micro-step of an epoch whose micro-steps are counted from the position `first`.
  [[gnu::cold]] void start(Split const& split, Index epoch, Index first, Index step, Index last_epoch, Replay replay,
                           Tail tail, OnFailure on_failure);
  /// Returns the next micro-step, ready. @throws DataError of the failed sample; later micro-steps are unaffected
  [[nodiscard]] std::shared_ptr<SlotProgress> next();
  void release(SlotProgress* slot) noexcept;
  /// Ends the threads; held batches stay valid.
  [[gnu::cold]] void stop() noexcept;
  [[nodiscard, gnu::cold]] LoaderStats stats() const;

  /// Returns the name of the row with this position in a slot, or an empty string.
  [[nodiscard, gnu::cold]] std::string name_at(SlotProgress const& slot, Index position) const;

 protected:
  /// A derived class calls `stop` in its destructor: workers call its functions.
  virtual ~LoaderScheduler();

 private:
  [[nodiscard]] virtual std::shared_ptr<SlotProgress> make_slot(int shards, memory::AnyHostResource memory) const = 0;
  [[nodiscard]] virtual std::unique_ptr<WorkerProgress> make_worker() const = 0;
  /// Makes an epoch current for rewind, end_of and rows_of; returns its number of micro-steps.
  [[nodiscard]] virtual Index open_epoch(Split const& split, Index epoch, Tail tail, Index first) noexcept = 0;
  /// Rewinds a stream to a micro-step.
  virtual void rewind(Index epoch, Index step) = 0;
  /// Returns the position after a micro-step.
  [[nodiscard]] virtual Index end_of(Index step) const noexcept = 0;
  [[nodiscard]] virtual BatchRows rows_of(Index step, int shard) const noexcept = 0;
  virtual void set_on_failure(OnFailure on_failure) noexcept = 0;
  /// Does a job without the mutex. Returns false if it stopped early because `generation` differs from `was`.
  virtual bool run(LoaderJob& job, WorkerProgress& worker, std::atomic<std::uint64_t> const& generation,
                   std::uint64_t was) const = 0;
  /// Removes the failed rows of a batch, or replaces their samples; returns the number of failed rows.
  [[nodiscard]] virtual Index handle_failed_rows(LoaderJob& job) const = 0;

  [[gnu::cold]] void add_worker();
  [[gnu::cold]] void try_add_worker();
  [[nodiscard]] bool all_busy() const noexcept;
  void work(WorkerProgress& worker);
  bool run_one(std::unique_lock<std::mutex>& lock, WorkerProgress& worker);
  [[nodiscard]] double& seconds_of(Phase phase) noexcept;
  [[nodiscard]] LoaderJob claim() noexcept;
  [[nodiscard]] Index run_length(Index rows) const noexcept;
  void finish(LoaderJob& job);
  [[gnu::cold]] void count(SampleFailure const& failure);
  [[nodiscard]] std::vector<std::shared_ptr<SlotProgress>>::iterator owner(SlotProgress const* slot) noexcept;
  [[nodiscard]] SlotProgress* deliverable() const noexcept;
  void wait_ready(std::unique_lock<std::mutex>& lock);
  [[nodiscard, gnu::cold]] std::string deadline_message(SlotProgress const& slot) const;
  [[gnu::cold]] void look(std::unique_lock<std::mutex>& lock);
  void assign(std::size_t most) noexcept;
  void begin(SlotProgress& slot) noexcept;
  void advance_epoch() noexcept;
  void recycle(SlotProgress* slot) noexcept;
  [[nodiscard]] Index ring_bytes() const noexcept;
  [[nodiscard]] bool within_budget() const noexcept;
  void count_bytes(LoaderJob const& job);
  [[gnu::cold]] void cancel(std::unique_lock<std::mutex>& lock);
  [[noreturn, gnu::cold]] void refuse_next() const;
  [[noreturn, gnu::cold]] void rethrow(SlotProgress const& slot, ShardProgress const& shard) const;

  static constexpr double shortest_pause = 0.5e-3, longest_pause = 16e-3;  // seconds between looks at the workers

  DataLoaderOptions const options_;
  OnFailure on_failure_ = options_.on_failure;  // since the last start
  mutable std::mutex mutex_;
  std::condition_variable work_, ready_, idle_;
  std::vector<std::shared_ptr<SlotProgress>> slots_;
  std::vector<SlotProgress*> queue_, free_;
  memory::AnyHostResource memory_;
  Split split_{0, 0, 1};
  Replay replay_ = Replay::none;
  Tail tail_ = Tail::exact;
  Index steps_ = 0;                              // of epoch_
  Index epoch_ = 0, step_ = 0, last_epoch_ = 0;  // of the next micro-step to queue
  std::atomic<std::uint64_t> generation_{0};
  int active_ = 0;  // jobs that run without the mutex
  bool stopped_ = false, observes_ = false;
  Index largest_bytes_ = 0;  // of a slot
  double started_ = 0;
  LoaderStats stats_;
  Timeline* timeline_ = nullptr;
  std::vector<std::unique_ptr<WorkerProgress>> workers_;
  std::vector<std::thread> threads_;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/loader/detail/loader_scheduler.ipp>
#endif
