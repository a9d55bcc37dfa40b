// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/data/collate.hpp>
#include <lockstep/data/data_loader_options.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/loader_core.hpp>
#include <lockstep/data/fingerprint.hpp>
#include <lockstep/data/loader_state.hpp>
#include <lockstep/data/loader_stats.hpp>
#include <lockstep/data/sampler.hpp>
#include <lockstep/data/sequential_sampler.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// What a DataLoader is made of.
template <class D, class S, class C>
concept Loadable = Dataset<D> && Sampler<S, D> && Collate<C, D>;

/// Turns a dataset into batches, in the sampler's order, ahead of their use. Worker threads live as long as the loader
/// and go on over the borders of epochs; batches arrive in order, the same ones for any number of workers; a batch in
/// use is never overwritten. Each micro-step delivers one separately collated batch per shard of this process's Split.
///
/// An exception from a sample arrives as a DataError, with the original nested, at the batch that holds the sample; the
/// next call delivers the next batch; OnFailure skips or substitutes instead. `start` and `next` are for one thread at
/// a time. A sample that hangs cannot be broken off: a deadline names it, and the destructor waits for it.
/// @cost no allocation per batch once the largest has been seen, where the dataset's `get` makes none
/// @determinism bitwise, for any number of workers
template <class D, class S, class C>
class DataLoader {
  static_assert(!detail::ReadsForward<D> || std::is_same_v<S, SequentialSampler>,
                "Lockstep: a stream gives its samples in an order of its own; its sampler is SequentialSampler");
  using OrderType = decltype(std::declval<S const&>().over(std::declval<D const&>()));
  using Core = detail::LoaderCore<D, OrderType, C>;

 public:
  using Sample = SampleOf<D>;
  using Batch = typename C::template Batch<D, HostSpace>;

  /// The batches of one micro-step, until destroyed. They stay valid when the loader is started anew or destroyed.
  class [[nodiscard]] Held {
   public:
    Held(Held&& other) noexcept = default;
    Held& operator=(Held&& other) noexcept {
      Held taken(std::move(other));
      core_.swap(taken.core_);
      slot_.swap(taken.slot_);
      return *this;
    }
    ~Held() {
      if (slot_) core_->release(slot_.get());
    }

    /// Samples in the batches.
    [[nodiscard]] Index rows() const noexcept {
      Index rows = 0;
      for (auto const& shard : slot_->shards) rows += shard.rows;
      return rows;
    }
    /// One batch per shard of the Split, in the shards' order.
    [[nodiscard]] std::span<Batch const> batches() const noexcept { return slot_->batches; }
    /// Which samples of the dataset stand in the rows of one of them.
    [[nodiscard]] std::span<Index const> samples(std::size_t shard) const noexcept {
      auto const& of = slot_->shards[shard];
      return std::span(of.indices).first(static_cast<std::size_t>(of.rows));
    }
    [[nodiscard]] Index epoch() const noexcept { return slot_->epoch; }
    /// "sample 17 (clips/17.npy)": what stands in the row with this position, for messages; empty when none has it.
    [[nodiscard]] std::string name_at(Index position) const {
      for (auto const& shard : slot_->shards)
        for (std::size_t k = 0; k < static_cast<std::size_t>(shard.rows); ++k)
          if (shard.positions[k] == position) return detail::name_of(core_->dataset(), shard.indices[k]);
      return {};
    }
    [[nodiscard]] Index step() const noexcept { return slot_->step; }
    /// That the loader was started with.
    [[nodiscard]] Split const& split() const noexcept { return slot_->split; }

   private:
    friend DataLoader;
    Held(std::shared_ptr<Core> core, std::shared_ptr<typename Core::Slot> slot) noexcept
        : core_(std::move(core)), slot_(std::move(slot)) {}

    std::shared_ptr<Core> core_;
    std::shared_ptr<typename Core::Slot> slot_;
  };

  /// @throws ConfigError when an option is out of range
  DataLoader(D dataset, S sampler, C collate, DataLoaderOptions options = {}) {
    require(options.batch_size >= 1 && options.batch_size <= max_rows, "batch_size", options.batch_size,
            "within [1, 2^31)");
    require(options.workers >= 0 && options.workers <= most_threads, "workers", options.workers,
            "within [0, 1024]; with 0 the caller does the work");
    require(options.prefetch >= 0 && options.prefetch <= most_slots, "prefetch", options.prefetch, "within [0, 1024]");
    require(options.max_workers >= 0 && options.max_workers <= most_threads, "max_workers", options.max_workers,
            "within [0, 1024]");
    require(options.budget_bytes >= 0, "budget_bytes", options.budget_bytes, "at least 0; 0 stands for no limit");
    require(options.deadline_seconds >= 0, "deadline_seconds", options.deadline_seconds,
            "at least 0; 0 stands for none");
    auto const samples = static_cast<Index>(dataset.size());
    require(samples >= 0, "the dataset's size()", samples, "at least 0");
    auto order = sampler.over(dataset);
    if constexpr (BatchOrder<OrderType>) {
      require(options.batch_size == 1, "batch_size", options.batch_size,
              "left at 1 where the sampler chooses how many samples a batch has");
      options.batch_size = order.max_rows();
      if (order.size() != order.batches() * order.max_rows())
        throw ConfigError("DataLoader: the sampler's order has size() " + std::to_string(order.size()) +
                          "; it must be batches() * max_rows(), " + std::to_string(order.batches()) + " * " +
                          std::to_string(order.max_rows()));
    } else {
      static_assert(
          !(
              requires { &OrderType::batches; } || requires { &OrderType::max_rows; } ||
              requires { &OrderType::rows; }),
          "Lockstep: the sampler's order has some of what an order by batches needs and not all: samples(), batches(), "
          "max_rows() and rows(epoch, batch), all const; see docs/reference/sampler.md");
    }
    if (detail::ReadsForward<D> && (options.tail != Tail::exact || options.on_failure == OnFailure::substitute))
      throw ConfigError(
          "DataLoader: a stream has no other samples to pad with or to put in a failed one's place, and no number of "
          "samples to drop some of; leave tail at exact and on_failure at raise or skip");
    replay_ = options.replay;
    size_ = samples;
    core_ = std::make_shared<Core>(std::move(dataset), std::move(order), std::move(collate), options);
  }
  DataLoader(DataLoader&&) noexcept = default;
  DataLoader& operator=(DataLoader&& other) noexcept {
    leave();
    core_ = std::move(other.core_);
    process_ = other.process_;
    fingerprint_ = std::move(other.fingerprint_);
    size_ = other.size_;
    replay_ = other.replay_;
    taker_ = other.taker_;
    return *this;
  }
  ~DataLoader() { leave(); }

  [[nodiscard]] DataLoaderOptions const& options() const noexcept { return core_->options(); }
  /// Samples in an epoch.
  [[nodiscard]] Index samples() const { return detail::samples_of(core_->order()); }
  /// Micro-steps in an epoch, alike on all ranks: ceil(samples / (batch_size * split.all)), or the floor for
  /// Tail::drop; of a BatchOrder's batches, ceil(batches / split.all).
  [[nodiscard]] Index steps(Split const& split = {}) const { return core_->layout(split, 0).steps(); }

  /// From the next start on, batches lie in memory of this resource: page-locked memory, for those that go to a device.
  void use(memory::AnyHostResource memory) { core_->use(memory); }

  /// From the next start on: whether batches are made, whatever the options said.
  void replay(Replay replay) noexcept { replay_ = replay; }
  /// Writes down in `timeline`, under a lock of the loader's, what workers do to which batch and how many batches stand
  /// ready when one is asked for; a null one ends it, after which nobody writes there any more.
  void trace(Timeline* timeline) { core_->trace(timeline); }

  /// Begins delivery at a micro-step of an epoch, up to the end of the epoch before `last_epoch`. What was prefetched
  /// under an earlier start is dropped, what is held stays. Waits for the samples that are being read. The thread that
  /// starts is the one that takes the batches.
  /// @throws ConfigError when the place does not exist, the dataset's size has changed, the sampler's order is for
  /// another batch size or number of shards, or this is a fork of the process that made the loader
  void start(Split split, Index epoch, Index step, Index last_epoch) {
    check(split, epoch, last_epoch);
    require(step >= 0 && step <= steps(split), "step", step, "within the epoch's micro-steps");
    taker_ = std::this_thread::get_id();
    core_->start(split, epoch, 0, step, last_epoch, replay_);
  }

  /// The place before a micro-step of an epoch.
  [[nodiscard]] LoaderState state_before(Split const& split, Index epoch, Index step) const {
    return {epoch, core_->layout(split, epoch).begin(step), samples(), fingerprint()};
  }
  /// Where to go on after a micro-step. A BatchOrder's batches are what its position counts: they can be shared by
  /// another number of ranks, and are made the same way.
  [[nodiscard]] LoaderState state_after(Held const& held) const {
    LoaderState out{held.epoch(), held.slot_->layout.end(held.step()), samples(), fingerprint()};
    if (held.step() + 1 >= held.slot_->layout.steps()) {
      ++out.epoch;
      out.position = 0;
    }
    return out;
  }
  /// Begins delivery where a state says, for any split, batch size and workers: in the epoch's rest, micro-steps count
  /// from the state's position on. Takes no longer for a later place.
  /// @throws DataError when the state is of other data or another order, ConfigError as `start`
  void resume(Split split, LoaderState const& state, Index last_epoch) {
    check(state);
    check(split, state.epoch, last_epoch);
    taker_ = std::this_thread::get_id();
    core_->start(split, state.epoch, state.position, 0, last_epoch, replay_);
  }
  /// 16 hexadecimal digits, alike for loaders that deliver as many samples in the same order. Reads none of them.
  [[nodiscard]] std::string order_fingerprint() const {
    return data::order_fingerprint(static_cast<Index>(core_->dataset().size()), core_->order());
  }
  /// @throws DataError when the state is of other data or another order
  void check(LoaderState const& state) const {
    if (state.fingerprint != fingerprint() || state.samples != samples()) {
      throw DataError("DataLoader: the state is of " + std::to_string(state.samples) + " samples with fingerprint " +
                      state.fingerprint + ", and the dataset and its order have " + std::to_string(samples()) +
                      " with fingerprint " + fingerprint() +
                      "; resume with the data, sampler and seed of the earlier run, or start anew");
    }
  }

  /// The next micro-step's batches, in order; waits until they are ready.
  /// @throws DataError when one of their samples cannot be made, with its name, epoch and step; or when the deadline
  /// has passed, with the samples that workers are at: call again to wait on
  /// @throws ConfigError when no batch is left, all are held, or another thread has started
  Held next() {
    expect_own_process();
    if (taker_ != std::this_thread::get_id() && taker_ != std::thread::id())
      throw ConfigError(
          "DataLoader: next is called by one thread and start by another, as where ranks that are threads share a "
          "loader; each rank makes one of its own, inside of launch::run, and takes the batches where it starts");
    return Held(core_, core_->next());
  }
  /// The same for a stream of unknown length: none once no rank has a row left; rows whose samples failed and are
  /// skipped count here. All ranks call it the same number of times; `sum_over_ranks(rows)` gives the sum of what they
  /// call it with.
  template <class SumOverRanks>
  std::optional<Held> next_while_any(SumOverRanks&& sum_over_ranks) {
    std::optional<Held> out(next());
    if (sum_over_ranks(out->slot_->found()) == 0) out.reset();
    return out;
  }

  /// Who has waited for whom, over the loader's life; `stats().verdict()` says it in a sentence.
  [[nodiscard]] LoaderStats stats() const { return core_->stats(); }

 private:
  static constexpr Index max_rows = (Index{1} << 31) - 1;
  static constexpr int most_threads = 1024, most_slots = 1024;

  /// Made when first asked for: it may be of all the data.
  [[nodiscard]] std::string const& fingerprint() const {
    if (fingerprint_.empty()) fingerprint_ = data::fingerprint(core_->dataset(), core_->order(), core_->options().seed);
    return fingerprint_;
  }
  void expect_own_process() const {
    if (::getpid() != process_)
      throw ConfigError("DataLoader: was made before a fork by process " + std::to_string(process_) +
                        ", whose workers process " + std::to_string(::getpid()) +
                        " does not have; make loaders after the fork");
  }
  /// In a fork nobody waits for workers, which it lacks: what they share with it is never given back.
  void leave() noexcept {
    if (!core_) return;
    if (::getpid() == process_)
      core_->stop();
    else
      static_cast<void>(new (std::nothrow) std::shared_ptr<Core>(std::move(core_)));
  }
  void check(Split const& split, Index epoch, Index last_epoch) const {
    expect_own_process();
    require(split.all >= 1, "split.all", split.all, "at least 1");
    require(split.count >= 1, "split.count", split.count, "at least 1");
    require(split.first >= 0 && split.first <= split.all - split.count, "split.first", split.first,
            "within [0, all - count]");
    if constexpr (detail::ReadsForward<D>) {
      Index const lanes = core_->dataset().lanes();
      require(lanes % split.all == 0, "split.all", split.all,
              "a divisor of the stream's " + std::to_string(lanes) + " lanes; give the stream more of them");
    } else {
      auto const now = static_cast<Index>(core_->dataset().size());
      require(
          now == size_, "the dataset's size()", now,
          std::to_string(size_) + ", as when the loader was made: make another loader of a dataset that has changed");
    }
    require(epoch >= 0 && epoch <= last_epoch, "epoch", epoch, "within [0, last_epoch]");
    if constexpr (requires { core_->order().global_batch(); }) {
      Index const samples = options().batch_size * split.all;
      require(core_->order().global_batch() % samples == 0, "the sampler's global_batch", core_->order().global_batch(),
              std::to_string(samples) + " or a multiple of that, which is batch_size times the " +
                  std::to_string(split.all) +
                  " ranks, devices or shards (split.all), or batches are of samples that do not belong together");
    }
  }
  template <class T>
  static void require(bool holds, char const* what, T value, std::string const& rule) {
    if (!holds) {
      throw ConfigError(std::string("DataLoader: ") + what + " is " + std::to_string(value) + "; it must be " + rule);
    }
  }

  std::shared_ptr<Core> core_;
  ::pid_t process_ = ::getpid();
  Index size_ = 0;  // of the dataset, when its order was made
  mutable std::string fingerprint_;
  Replay replay_ = Replay::none;
  std::thread::id taker_{};
};

/// Says what is wrong, of anything else, and nothing more.
template <class D, class S, class C>
requires(!Loadable<D, S, C>) class DataLoader<D, S, C> {
  static_assert(Dataset<D>,
                "Lockstep: the first argument of DataLoader is no dataset: it needs size() and get(i), both const; a "
                "std::vector goes into data::InMemoryDataset; see docs/reference/dataset.md");
  static_assert(
      !Dataset<D> || Sampler<S, D>,
      "Lockstep: the second argument of DataLoader is no sampler for this dataset: it needs over(dataset) that "
      "gives an Order; see docs/reference/sampler.md");
  static_assert(!(Dataset<D> && Sampler<S, D>) || Collate<C, D>,
                "Lockstep: the third argument of DataLoader is no collate for this dataset: it needs Batch<Dataset, "
                "Space>, plan(plan, slab) and row(batch, row, sample); see docs/reference/collate.md");

 public:
  DataLoader(D const&, S const&, C const&, DataLoaderOptions const& = {}) {}
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
