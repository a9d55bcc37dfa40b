// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/expect_optional_members.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/loader/detail/batch_shapes.hpp>
#include <lockstep/data/loader/detail/loader_checks.hpp>
#include <lockstep/data/loader/detail/loader_core.hpp>
#include <lockstep/data/loader/fingerprint.hpp>
#include <lockstep/data/loader/loader_state.hpp>
#include <lockstep/data/loader/loader_stats.hpp>
#include <lockstep/data/loader/sample_hashes.hpp>
#include <lockstep/data/sampler/sampler.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Valid template arguments of a DataLoader.
template <class Source, class SamplerType, class CollateType>
concept Loadable = Dataset<Source> && Sampler<SamplerType, Source> && Collate<CollateType, Source>;

/// Makes batches of a dataset in the sampler's order, and prefetches them. Worker threads live as long as the loader
/// and continue across epoch boundaries. Batches arrive in order and are equal for any number of workers. A batch in
/// use is never overwritten. Each micro-step delivers one separately collated batch per shard of this process's Split.
///
/// An exception from a sample arrives as a DataError, with the original nested, at the batch that holds the sample. The
/// next call delivers the next batch. OnFailure skips or substitutes the sample instead. Call `start` and `next` from
/// one thread at a time. A sample that hangs cannot be interrupted: a deadline names it, and the destructor waits for
/// it.
/// @cost no allocation per batch once the largest has been seen, if the dataset's `get` does not allocate
/// @determinism bitwise, for any number of workers
template <class Source, class SamplerType, class CollateType>
class DataLoader {
  static_assert(!detail::SequentialAccess<Source> || std::is_same_v<SamplerType, SequentialSampler>,
                "Lockstep: a stream has its own sample order; its sampler is SequentialSampler");
  static_assert(detail::expect_optional_members<Source>());
  using OrderType = decltype(std::declval<SamplerType const&>().over(std::declval<Source const&>()));
  using Core = detail::LoaderCore<Source, OrderType, CollateType>;

 public:
  using Sample = SampleOf<Source>;                                        ///< type of a sample
  using Batch = typename CollateType::template Batch<Source, HostSpace>;  ///< type of a batch in host memory
  static_assert(FinishesBatches<CollateType, Source> ||
                    !(
                        requires(CollateType & collate, Batch& batch, Slab& slab) { collate.finish(batch, slab); } ||
                        requires { &CollateType::finish; }),
                "Lockstep: a collate's finish(batch, slab) is const; see docs/reference/collate.md");
  /// Whether a start at an earlier micro-step delivers its batches again; not of a stream.
  static constexpr bool repeats = !detail::SequentialAccess<Source>;

  /// Holds the batches of one micro-step until destroyed. They stay valid if the loader is restarted or destroyed.
  class [[nodiscard]] HeldBatches {
   public:
    /// Takes over the batches.
    HeldBatches(HeldBatches&& other) noexcept = default;
    /// Releases the own batches and takes over the others.
    HeldBatches& operator=(HeldBatches&& other) noexcept {
      HeldBatches taken(std::move(other));
      core_.swap(taken.core_);
      slot_.swap(taken.slot_);
      return *this;
    }
    ~HeldBatches() {
      if (slot_) core_->release(slot_.get());
    }

    /// Returns the number of samples in the batches.
    [[nodiscard]] Index rows() const noexcept { return slot_->rows(); }
    /// Returns one batch per shard of the Split, in the shards' order.
    [[nodiscard]] std::span<Batch const> batches() const noexcept {
      return static_cast<typename Core::Slot const&>(*slot_).batches;
    }
    /// Returns the numbers, in the dataset, of the samples in the rows of one batch.
    [[nodiscard]] std::span<Index const> samples(std::size_t shard) const noexcept {
      auto const& of = *slot_->shards[shard];
      return std::span(of.indices).first(static_cast<std::size_t>(of.rows));
    }
    /// Returns the epoch of the batches, from 0.
    [[nodiscard]] Index epoch() const noexcept { return slot_->epoch; }
    /// Returns the name of the row with this position, for messages: "sample 17 (clips/17.npy)". Empty if no row has
    /// it.
    [[nodiscard]] std::string name_at(Index position) const { return core_->name_at(*slot_, position); }
    /// Returns the micro-step of the batches in the epoch, from 0.
    [[nodiscard]] Index step() const noexcept { return slot_->step; }
    /// Returns the split that the loader was started with.
    [[nodiscard]] Split const& split() const noexcept { return slot_->split; }

   private:
    friend DataLoader;
    HeldBatches(std::shared_ptr<detail::LoaderScheduler> core, std::shared_ptr<detail::SlotProgress> slot) noexcept
        : core_(std::move(core)), slot_(std::move(slot)) {}

    std::shared_ptr<detail::LoaderScheduler> core_;
    std::shared_ptr<detail::SlotProgress> slot_;
  };

  /// Deprecated: use HeldBatches.
  using Held [[deprecated("DataLoader::HeldBatches")]] = HeldBatches;

  /// @throws ConfigError if an option is out of range
  [[gnu::cold]] DataLoader(Source dataset, SamplerType sampler, CollateType collate, DataLoaderOptions options = {}) {
    describe(options).check_ranges();
    auto const samples = static_cast<Index>(dataset.size());
    if (samples < 0) detail::refuse("the dataset's size()", samples, "at least 0");
    auto order = sampler.over(dataset);
    if constexpr (BatchOrder<OrderType>) {
      detail::expect_batches(options.batch_size, order.size(), order.batches(), order.max_rows());
      options.batch_size = order.max_rows();
    } else {
      static_assert(!(
                        requires { &OrderType::batches; } || requires { &OrderType::max_rows; } ||
                        requires { &OrderType::rows; }),
                    "Lockstep: the sampler's order lacks some functions of an order by batches: samples(), batches(), "
                    "max_rows() and rows(epoch, batch), all const; see docs/reference/sampler.md");
    }
    if constexpr (detail::SequentialAccess<Source>) detail::expect_stream_options(options);
    replay_ = options.replay;
    size_ = samples;
    core_ = std::make_shared<Core>(std::move(dataset), std::move(order), std::move(collate), options);
  }
  /// Rejects a number in place of the options at compile time.
  template <class Number>
  requires(std::is_arithmetic_v<Number>) DataLoader(Source const&, SamplerType const&, CollateType const&, Number) {
    static_assert(!std::is_arithmetic_v<Number>,
                  "Lockstep: the fourth argument of DataLoader is a number, and should be options in braces: "
                  "{.batch_size = 32}");
  }
  /// Takes over the workers. Held batches stay valid.
  DataLoader(DataLoader&&) noexcept = default;
  /// Ends the own workers and takes over the others. Held batches stay valid.
  DataLoader& operator=(DataLoader&& other) noexcept {
    release_core();
    core_ = std::move(other.core_);
    process_ = other.process_;
    fingerprint_ = std::move(other.fingerprint_);
    sample_hashes_ = std::move(other.sample_hashes_);
    size_ = other.size_;
    replay_ = other.replay_;
    consumer_thread_ = other.consumer_thread_;
    return *this;
  }
  ~DataLoader() { release_core(); }

  /// Returns the options. With a BatchOrder, `batch_size` is its max_rows().
  [[nodiscard]] DataLoaderOptions const& options() const noexcept { return core_->options(); }
  /// Returns the number of samples in an epoch.
  [[nodiscard]] Index samples() const { return core_->samples(); }
  /// Returns whether an epoch has an end. That of a stream of unknown length has none: see `next_while_any`.
  [[nodiscard]] bool has_end() const { return repeats || samples() < detail::unknown_size; }
  /// Returns the number of micro-steps in an epoch, equal on all ranks: ceil(samples / (batch_size * split.all)), or
  /// the floor for Tail::drop. For a BatchOrder: ceil(batches / split.all).
  [[nodiscard]] Index steps(Split const& split = {}) const { return steps(split, options().tail); }
  /// Returns the number of micro-steps with another tail than the option's.
  [[nodiscard]] Index steps(Split const& split, Tail tail) const { return core_->steps_of(split, 0, tail); }

  /// Sets the memory resource of batches from the next start on, such as page-locked memory for copies to a device.
  void use(memory::AnyHostResource memory) { core_->use(memory); }

  /// Sets whether batches are made, from the next start on. Overrides the option.
  void replay(Replay replay) noexcept { replay_ = replay; }
  /// Records the jobs of workers in `timeline`, and the number of ready batches at each `next`. Holds the loader's lock
  /// while it records. Null stops recording; `timeline` is not written after the call.
  void trace(Timeline* timeline) { core_->trace(timeline); }
  /// Makes `next` look at the workers now and then while it waits for a batch, for LoaderStats::looks and `locked`. A
  /// trainer calls it.
  void observe() noexcept { core_->observe(); }

  /// Starts delivery at a micro-step of an epoch, until the end of the epoch before `last_epoch`. Drops batches that
  /// were prefetched under an earlier start; held batches stay valid. Waits for samples that are being read. The thread
  /// that calls `start` must also call `next`.
  /// @throws ConfigError if the micro-step does not exist, or the dataset's size has changed
  /// @throws ConfigError if the sampler's order is for another batch size or number of shards
  /// @throws ConfigError in a fork of the process that made the loader
  void start(Split split, Index epoch, Index step, Index last_epoch) {
    start(split, epoch, step, last_epoch, options().tail);
  }
  /// Starts delivery with another tail than the option's, until the next start.
  void start(Split split, Index epoch, Index step, Index last_epoch, Tail tail) {
    start(split, epoch, step, last_epoch, tail, options().on_failure);
  }
  /// Starts delivery with another tail and another handling of failures than the options', until the next start. An
  /// evaluation counts each sample at most once with Tail::exact and without OnFailure::substitute.
  [[gnu::cold]] void start(Split split, Index epoch, Index step, Index last_epoch, Tail tail, OnFailure on_failure) {
    check(split, epoch, last_epoch);
    if (step < 0 || step > steps(split, tail)) detail::refuse("step", step, "within the epoch's micro-steps");
    consumer_thread_ = std::this_thread::get_id();
    core_->start(split, epoch, 0, step, last_epoch, replay_, tail, on_failure);
  }

  /// Returns the shapes of this process's batches in at most `micro_steps` micro-steps from one of an epoch on, before
  /// the epoch `last_epoch`. Reads no samples. Looks at no more than 65,536 samples and the rest of a micro-step.
  /// Available if the collate is a PadCollate, samples have no strings, and their lengths are known without reading
  /// them: they are fixed, or the dataset has extent(i) or its samples in memory.
  [[nodiscard, gnu::cold]] std::vector<BatchShape<Sample>> coming_shapes(
      Split const& split, Index epoch, Index step, Index last_epoch,
      Index micro_steps) const requires detail::KnowsShapes<Source, CollateType> {
    detail::ShapeCounter counter(core_->dataset(), core_->collate());
    auto const size = std::max<Index>(static_cast<Index>(core_->order().size()), 1);
    for (; epoch < last_epoch && micro_steps > 0 && counter.samples() < 65'536; ++epoch, step = 0) {
      auto const layout = core_->layout(split, epoch, options().tail);
      auto index_at = core_->order().in(epoch);
      for (; step < layout.steps() && micro_steps > 0 && counter.samples() < 65'536; ++step, --micro_steps)
        counter.add(layout, step, split, size, index_at);
      if (layout.steps() == 0) break;
    }
    return counter.shapes();
  }
  /// Returns a batch of zeros of the shape, with its memory, in a batch() of the type Batch.
  [[nodiscard, gnu::cold]] Collated<CollateType, Sample, Source> zeros(BatchShape<Sample> const& shape) const {
    return {core_->collate(), std::vector(static_cast<std::size_t>(shape.rows), shape.longest)};
  }

  /// Returns the state before a micro-step of an epoch. After the last micro-step, it is the next epoch's first state.
  /// @throws ConfigError if the micro-step does not exist
  [[nodiscard]] LoaderState state_before(Split const& split, Index epoch, Index step) const {
    auto const layout = core_->layout(split, epoch, options().tail);
    if (step < 0 || step > layout.steps()) detail::refuse("step", step, "within the epoch's micro-steps");
    bool const ends = step > 0 && step == layout.steps();
    return {epoch + (ends ? 1 : 0), ends ? 0 : layout.begin(step), samples(), fingerprint()};
  }
  /// Returns the state from which to resume after a micro-step. For a BatchOrder, the position counts batches: another
  /// number of ranks can share them, and their content is equal.
  [[nodiscard]] LoaderState state_after(HeldBatches const& held) const {
    LoaderState out{held.epoch(), held.slot_->end, samples(), fingerprint()};
    if (held.step() + 1 >= held.slot_->steps) {
      ++out.epoch;
      out.position = 0;
    }
    return out;
  }
  /// Starts delivery at a state, for any split, batch size and number of workers. In the rest of the epoch, micro-steps
  /// count from the state's position. Takes constant time for any position.
  /// @throws DataError if the state belongs to other data or another order
  /// @throws ConfigError as `start`
  void resume(Split split, LoaderState const& state, Index last_epoch) {
    check(state);
    check(split, state.epoch, last_epoch);
    consumer_thread_ = std::this_thread::get_id();
    core_->start(split, state.epoch, state.position, 0, last_epoch, replay_, options().tail, options().on_failure);
  }
  /// Returns 16 hexadecimal digits, equal for loaders that deliver as many samples in the same order. Reads no sample.
  [[nodiscard]] std::string order_fingerprint() const {
    return data::order_fingerprint(static_cast<Index>(core_->dataset().size()), core_->order());
  }
  /// Returns `data::sample_hashes` of the dataset. Reads up to 8 samples at the first call.
  [[nodiscard, gnu::cold]] std::vector<SampleHash> const& sample_hashes() const {
    if (!sample_hashes_) sample_hashes_ = data::sample_hashes(core_->dataset());
    return *sample_hashes_;
  }
  /// Checks that this loader can resume from the state.
  /// @throws DataError if the state belongs to other data or another order
  [[gnu::cold]] void check(LoaderState const& state) const { detail::expect_state(state, samples(), fingerprint()); }

  /// Returns the next micro-step's batches, in order; waits until they are ready.
  /// @throws DataError if one of their samples cannot be made, with the sample's name, epoch and step
  /// @throws DataError if the deadline passes, with the samples that workers are reading or writing; call again to
  /// continue waiting
  /// @throws ConfigError if no batch is left, all are held, or another thread called `start`
  HeldBatches next() {
    detail::expect_consumer(process_, consumer_thread_);
    return HeldBatches(core_, core_->next());
  }
  /// Returns the next micro-step of a stream of unknown length, or nothing when no rank has a row left. Rows whose
  /// failed samples are skipped count. Collective: all ranks call it equally often. `sum_over_ranks(rows)` returns the
  /// sum of all ranks' arguments.
  template <class SumOverRanks>
  std::optional<HeldBatches> next_while_any(SumOverRanks&& sum_over_ranks) {
    std::optional<HeldBatches> out(next());
    if (sum_over_ranks(out->slot_->existing_rows()) == 0) out.reset();
    return out;
  }

  /// Returns the waiting times over the loader's life; `stats().verdict()` summarizes them in a sentence.
  [[nodiscard]] LoaderStats stats() const { return core_->stats(); }

 private:
  /// Computed on first use: it may read all data.
  [[nodiscard]] std::string const& fingerprint() const {
    if (fingerprint_.empty()) fingerprint_ = data::fingerprint(core_->dataset(), core_->order(), core_->options().seed);
    return fingerprint_;
  }
  /// A fork has no workers, so it does not wait for them; it leaks the memory that it shares with them.
  void release_core() noexcept {
    if (!core_) return;
    if (::getpid() == process_)
      core_->stop();
    else
      static_cast<void>(new (std::nothrow) std::shared_ptr<Core>(std::move(core_)));
  }
  [[gnu::cold]] void check(Split const& split, Index epoch, Index last_epoch) const {
    detail::expect_split(process_, split);
    if constexpr (detail::SequentialAccess<Source>) {
      Index const lanes = core_->dataset().lanes();
      if (lanes % split.all != 0)
        detail::refuse("split.all", split.all,
                       "a divisor of the stream's " + std::to_string(lanes) + " lanes; give the stream more of them");
    } else {
      detail::expect_size(static_cast<Index>(core_->dataset().size()), size_);
    }
    if (epoch < 0 || epoch > last_epoch) detail::refuse("epoch", epoch, "within [0, last_epoch]");
    if constexpr (requires { core_->order().global_batch(); }) {
      detail::expect_divisible(core_->order().global_batch(), options().batch_size, split.all);
    }
  }
  std::shared_ptr<Core> core_;
  ::pid_t process_ = ::getpid();
  Index size_ = 0;  // of the dataset, when its order was made
  mutable std::string fingerprint_;
  mutable std::optional<std::vector<SampleHash>> sample_hashes_;
  Replay replay_ = Replay::none;
  std::thread::id consumer_thread_{};
};

/// Reports why the arguments are invalid, without further errors.
template <class Source, class SamplerType, class CollateType>
requires(!Loadable<Source, SamplerType, CollateType>) class DataLoader<Source, SamplerType, CollateType> {
  static_assert(Dataset<Source>,
                "Lockstep: the first argument of DataLoader is no dataset: it needs size() and get(i), both const; a "
                "std::vector goes into data::InMemoryDataset; see docs/reference/dataset.md");
  static_assert(
      !Dataset<Source> || Sampler<SamplerType, Source>,
      "Lockstep: the second argument of DataLoader is no sampler for this dataset: it needs over(dataset) const that "
      "returns an order, with size() const and in(epoch) const -> a function of the position; see "
      "docs/reference/sampler.md");
  static_assert(!(Dataset<Source> && Sampler<SamplerType, Source>) || !std::is_same_v<CollateType, DataLoaderOptions>,
                "Lockstep: DataLoader takes a collate before the options: data::PadCollate{} gives all sequences of a "
                "batch one length, data::RaggedCollate{} does not pad; see docs/reference/collate.md");
  static_assert(!(Dataset<Source> && Sampler<SamplerType, Source>) || Collate<CollateType, Source> ||
                    std::is_same_v<CollateType, DataLoaderOptions>,
                "Lockstep: the third argument of DataLoader is no collate for this dataset: it needs Batch<Dataset, "
                "Space>, plan(plan, slab) const -> Batch and row(batch, row, sample) const; see "
                "docs/reference/collate.md");

 public:
  /// @cond
  // Members that prevent further errors.
  using Batch = void;

  DataLoader(Source const&, SamplerType const&, CollateType const&, DataLoaderOptions const& = {}) {}
  DataLoader(Source const&, SamplerType const&) {}
  [[nodiscard]] DataLoaderOptions options() const { return {}; }
  [[nodiscard]] Index samples() const { return 0; }
  [[nodiscard]] Index steps(Split const& = {}) const { return 0; }
  void start(Split const&, Index, Index, Index) {}
  void next() {}
  /// @endcond
};

/// Arguments without a collate, which DataLoader rejects.
template <class Source, class SamplerType>
DataLoader(Source, SamplerType, DataLoaderOptions) -> DataLoader<Source, SamplerType, DataLoaderOptions>;
/// Arguments without a sampler and a collate, which DataLoader rejects.
template <class Source>
DataLoader(Source, DataLoaderOptions) -> DataLoader<Source, DataLoaderOptions, DataLoaderOptions>;

}}}  // namespace lockstep::data
