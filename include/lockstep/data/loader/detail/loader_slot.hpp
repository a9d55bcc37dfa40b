// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/slab.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/memory/block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Phases of a batch, in this order. Several workers read and write rows; one worker plans, one finishes.
enum class Phase { read, plan, write, finish, done };

/// A failure in a batch. Keeps the failure of the row with the lowest position, so that the report does not depend on
/// timing.
struct RowFailure {
  std::exception_ptr error;
  Index row = -1;         // -1: the batch as a whole
  bool may_skip = false;  // OnFailure::skip would leave the row's sample out

  void merge(RowFailure const& other) {
    if (other.error && (!error || other.row < row)) *this = other;
  }
};

/// The rows that a micro-step's batch takes: positions first, first + stride, and so on.
struct BatchRows {
  Index rows = 0, first = 0, stride = 0;
};

/// Part of a batch in progress that depends on no type of the user: its slab and its bookkeeping, all reused. `claimed`
/// and `finished` count rows of the current phase.
struct ShardProgress {
  Slab slab;
  memory::Block position_memory;  // from the slab's memory resource
  std::span<Index> positions;
  std::vector<Index> indices;
  std::vector<std::uint8_t> replaced;  // 1 for rows whose samples OnFailure::substitute has replaced

  int shard = 0;
  BatchRows planned;
  Index rows = 0;
  Phase phase = Phase::done;
  Index claimed = 0, finished = 0;
  RowFailure failure;
  std::vector<Index> failed;  // rows to skip or to substitute
  Index missing = 0;          // failed rows whose samples do not exist
  Index bytes = 0;            // of the slab when last counted
  int restarts = 0;           // of this batch; from the first restart on, the indices are kept
  bool is_finished_by_collate;

  ShardProgress(Index batch_size, memory::AnyHostResource memory, bool finishes);
  ShardProgress(ShardProgress&&) noexcept;
  ~ShardProgress();

  void begin(int number, BatchRows const& batch) noexcept;
  void enter(Phase next) noexcept {
    phase = next;
    claimed = finished = 0;
  }
  /// Returns the number of units to claim in this phase.
  [[nodiscard]] Index total() const noexcept {
    return phase == Phase::done ? 0 : phase == Phase::plan || phase == Phase::finish ? 1 : rows;
  }
  /// Enters the next phase. Called after the last row of a phase has finished.
  void advance() noexcept;
  /// Restarts the batch with its current indices.
  void restart() noexcept;
  /// Closes the gaps of the failed rows in indices and positions. Returns the numbers that the other rows had.
  [[nodiscard]] std::vector<Index> take_kept_rows();
};

/// One batch in progress.
template <class Source, class CollateType>
struct LoaderShard : ShardProgress {
  using Sample = SampleOf<Source>;
  using Reader = SampleReader<Source>;
  static constexpr bool reads_into_rows = ReadsIntoRows<Source, CollateType> && !DrawsSamples<Source>;
  static constexpr bool by_reference = std::is_lvalue_reference_v<decltype(std::declval<Source const&>().get(Index{}))>;
  /// Samples are in memory already, so no sample can delay the batch.
  static constexpr bool is_in_memory = by_reference&& noexcept(std::declval<Source const&>().get(Index{}));
  using HeldSample = std::conditional_t<by_reference, Sample const*, std::optional<Sample>>;

  std::vector<SampleExtent<Sample>> extents;
  std::vector<HeldSample> samples;  // between reading and writing

  [[gnu::cold]] LoaderShard(Index batch_size, memory::AnyHostResource memory)
      : ShardProgress(batch_size, memory, FinishesBatches<CollateType, Source>),
        extents(indices.size()),
        samples(reads_into_rows ? 0 : indices.size()) {}

  /// Closes the gaps of the failed rows.
  [[gnu::cold]] void remove_failed() {
    auto const kept = take_kept_rows();
    for (std::size_t to = 0; to < kept.size(); ++to) {
      auto const from = static_cast<std::size_t>(kept[to]);
      if (from == to) continue;
      extents[to] = extents[from];
      if constexpr (!reads_into_rows) samples[to] = std::move(samples[from]);
    }
  }

  /// Returns false if there is no such sample because a stream has ended.
  bool read(Reader& reader, Index row, SampleKey const& key) {
    auto const k = static_cast<std::size_t>(row);
    if constexpr (SequentialAccess<Source>) {
      samples[k] = reader.take(key);
      if (!samples[k]) return false;
      extents[k] = extent_of(*samples[k]);
    } else if constexpr (reads_into_rows) {
      extents[k] = reader.extent(indices[k]);
    } else if constexpr (by_reference) {
      samples[k] = &reader.get(indices[k], key);
      extents[k] = extent_of(*samples[k]);
    } else {
      samples[k].emplace(reader.get(indices[k], key));
      extents[k] = extent_of(*samples[k]);
    }
    return true;
  }
  template <class Batch>
  void plan(CollateType const& collate, Index epoch, Batch& batch) {
    auto const n = static_cast<std::size_t>(rows);
    batch = collate.plan(BatchPlan<Sample>{{extents.data(), n}, {positions.data(), n}, epoch}, slab);
  }
  template <class Batch>
  void write(Reader& reader, CollateType const& collate, Batch& batch, Index row) {
    auto const k = static_cast<std::size_t>(row);
    if constexpr (reads_into_rows) {
      reader.read_into(indices[k], collate.open_row(batch, row));
    } else {
      collate.row(batch, row, *samples[k]);
      if constexpr (!by_reference) samples[k].reset();
    }
  }
  template <class Batch>
  void finish(CollateType const& collate, Batch& batch) {
    if constexpr (FinishesBatches<CollateType, Source>) collate.finish(batch, slab);
  }
};

/// Part of a micro-step of the ring that depends on no type of the user.
struct SlotProgress {
  std::vector<ShardProgress*> shards;
  memory::AnyHostResource memory;  // of the slabs
  Split split;
  Index epoch = 0, step = 0;
  Index steps = 0;                  // of the epoch
  Index end = 0;                    // position in the epoch after this micro-step
  Index bytes = 0;                  // used by the slabs so far
  Index expected_bytes = 0;         // while it is queued: estimate from other slots
  int unfinished = 0;               // shards
  std::size_t first_claimable = 0;  // shards before this one have nothing to claim
  bool held = false;
  bool is_complete = false;  // was delivered, and can be again

  explicit SlotProgress(memory::AnyHostResource slab_memory);
  ~SlotProgress();
  SlotProgress(SlotProgress const&) = delete;
  SlotProgress& operator=(SlotProgress const&) = delete;

  void add(ShardProgress& shard);
  /// Returns the shard's number in this slot.
  [[nodiscard]] std::size_t place(ShardProgress const& shard) const noexcept {
    return static_cast<std::size_t>(shard.shard - split.first);
  }
  [[nodiscard]] bool ready() const noexcept { return unfinished == 0; }
  /// Returns the number of samples in the batches.
  [[nodiscard]] Index rows() const noexcept;
  /// Returns the number of rows whose samples exist, including failed samples.
  [[nodiscard]] Index existing_rows() const noexcept;
  /// Returns the shard whose failure is first in the epoch's order, or null.
  [[nodiscard]] ShardProgress const* failed() const noexcept;
};

/// One micro-step of the ring: a batch for each local shard.
template <class Source, class CollateType>
struct LoaderSlot : SlotProgress {
  using Batch = typename CollateType::template Batch<Source, HostSpace>;
  using Shard = LoaderShard<Source, CollateType>;

  std::vector<Batch> batches;

  [[gnu::cold]] LoaderSlot(Index batch_size, int count, memory::AnyHostResource slab_memory)
      : SlotProgress(slab_memory), batches(static_cast<std::size_t>(count)) {
    own_.reserve(batches.size());
    for (int i = 0; i < count; ++i) own_.emplace_back(batch_size, memory);
    for (auto& shard : own_) add(shard);
  }

 private:
  std::vector<Shard> own_;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/loader/detail/loader_slot.ipp>
#endif
