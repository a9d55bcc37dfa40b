// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
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
  Index row = -1;  // -1: the batch as a whole

  void merge(RowFailure const& other) {
    if (other.error && (!error || other.row < row)) *this = other;
  }
};

/// Returns the message of an exception.
inline std::string message_of(std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::exception const& known) {
    return known.what();
  } catch (...) {
    return "an exception of unknown type was thrown";
  }
}

/// One batch in progress, its slab and its bookkeeping, all reused. `claimed` and `finished` count rows of the current
/// phase.
template <class Source, class CollateType>
struct LoaderShard {
  using Sample = SampleOf<Source>;
  using Reader = SampleReader<Source>;
  static constexpr bool reads_into_rows = ReadsIntoRows<Source, CollateType> && !DrawsSamples<Source>;
  static constexpr bool by_reference = std::is_lvalue_reference_v<decltype(std::declval<Source const&>().get(Index{}))>;
  /// Samples are in memory already, so no sample can delay the batch.
  static constexpr bool is_in_memory = by_reference&& noexcept(std::declval<Source const&>().get(Index{}));
  using HeldSample = std::conditional_t<by_reference, Sample const*, std::optional<Sample>>;

  Slab slab;
  memory::Block position_memory;  // from the slab's memory resource
  std::span<Index> positions;
  std::vector<Index> indices;
  std::vector<SampleExtent<Sample>> extents;
  std::vector<HeldSample> samples;  // between reading and writing

  int shard = 0;
  Index rows = 0;
  Index planned_rows = 0;
  Phase phase = Phase::done;
  Index claimed = 0, finished = 0;
  RowFailure failure;
  std::vector<Index> failed;  // rows to skip or to substitute
  Index missing = 0;          // failed rows whose samples do not exist
  Index bytes = 0;            // of the slab when last counted
  int restarts = 0;           // of this batch; from the first restart on, the indices are kept

  LoaderShard(Index batch_size, memory::AnyHostResource memory)
      : slab(memory),
        position_memory(memory.allocate(static_cast<std::size_t>(batch_size) * sizeof(Index))),
        positions(reinterpret_cast<Index*>(position_memory.data()), static_cast<std::size_t>(batch_size)),
        indices(positions.size()),
        extents(indices.size()),
        samples(reads_into_rows ? 0 : indices.size()) {}

  void begin(int number, Index row_count) noexcept {
    shard = number;
    rows = planned_rows = row_count;
    failure = {};
    failed.clear();
    missing = 0;
    restarts = 0;
    enter(rows == 0 ? Phase::plan : Phase::read);
  }
  void enter(Phase next) noexcept {
    phase = next;
    claimed = finished = 0;
  }
  /// Returns the number of units to claim in this phase.
  [[nodiscard]] Index total() const noexcept {
    return phase == Phase::done ? 0 : phase == Phase::plan || phase == Phase::finish ? 1 : rows;
  }
  /// Enters the next phase. Called after the last row of a phase has finished.
  void advance() noexcept {
    constexpr auto last = FinishesBatches<CollateType, Source> ? Phase::finish : Phase::done;
    auto const after_plan = rows == 0 ? last : Phase::write;
    enter(failure.error || phase == Phase::finish ? Phase::done
          : phase == Phase::read                  ? Phase::plan
          : phase == Phase::plan                  ? after_plan
                                                  : last);
  }
  /// Restarts the batch with its current indices.
  void restart() noexcept {
    ++restarts;
    failed.clear();
    enter(rows == 0 ? Phase::plan : Phase::read);
  }
  /// Closes the gaps of the failed rows.
  void remove_failed() {
    std::sort(failed.begin(), failed.end());
    auto gap = failed.begin();
    Index kept = 0;
    for (Index row = 0; row < rows; ++row) {
      if (gap != failed.end() && *gap == row) {
        ++gap;
        continue;
      }
      auto const from = static_cast<std::size_t>(row), to = static_cast<std::size_t>(kept++);
      if (from == to) continue;
      indices[to] = indices[from];
      positions[to] = positions[from];
      extents[to] = extents[from];
      if constexpr (!reads_into_rows) samples[to] = std::move(samples[from]);
    }
    rows = kept;
    failed.clear();
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

/// One micro-step of the ring: a batch for each local shard.
template <class Source, class CollateType, class Layout>
struct LoaderSlot {
  using Batch = typename CollateType::template Batch<Source, HostSpace>;

  std::vector<LoaderShard<Source, CollateType>> shards;
  std::vector<Batch> batches;
  memory::AnyHostResource memory;  // of the slabs
  Layout layout;
  Split split;
  Index epoch = 0, step = 0;
  Index bytes = 0;                  // used by the slabs so far
  Index expected_bytes = 0;         // while it is queued: estimate from other slots
  int unfinished = 0;               // shards
  std::size_t first_claimable = 0;  // shards before this one have nothing to claim
  bool held = false;
  bool is_complete = false;  // was delivered, and can be again

  LoaderSlot(Index batch_size, int count, memory::AnyHostResource slab_memory)
      : batches(static_cast<std::size_t>(count)), memory(slab_memory) {
    shards.reserve(batches.size());
    for (int i = 0; i < count; ++i) shards.emplace_back(batch_size, memory);
  }

  void begin(Index at_epoch, Index at_step, Split const& of_start, Layout const& of_epoch, bool again) noexcept {
    split = of_start;
    epoch = at_epoch;
    step = at_step;
    layout = of_epoch;
    if (again && is_complete) return;
    is_complete = false;
    unfinished = split.count;
    first_claimable = 0;
    for (int i = 0; i < split.count; ++i) {
      shards[static_cast<std::size_t>(i)].begin(split.first + i, layout.rows(step, split.first + i));
    }
  }
  /// Marks that the shard may have rows to claim again.
  void reopen(LoaderShard<Source, CollateType> const& shard) noexcept {
    first_claimable = std::min(first_claimable, static_cast<std::size_t>(&shard - shards.data()));
  }
  [[nodiscard]] bool ready() const noexcept { return unfinished == 0; }
  /// Returns the number of rows whose samples exist, including failed samples.
  [[nodiscard]] Index existing_rows() const noexcept {
    Index out = 0;
    for (auto const& shard : shards) out += shard.planned_rows - shard.missing;
    return out;
  }

  /// Returns the shard whose failure is first in the epoch's order, or null.
  [[nodiscard]] LoaderShard<Source, CollateType> const* failed() const noexcept {
    LoaderShard<Source, CollateType> const* first = nullptr;
    for (auto const& shard : shards) {
      if (shard.failure.error && (!first || shard.failure.row < first->failure.row)) first = &shard;
    }
    return first;
  }
  /// @throws DataError that names the sample, with the original nested
  [[noreturn]] void rethrow(Source const& dataset, LoaderShard<Source, CollateType> const& shard) const {
    auto const row = shard.failure.row;
    auto const at = "epoch " + std::to_string(epoch) + ", step " + std::to_string(step);
    auto const k = static_cast<std::size_t>(std::max<Index>(row, 0));
    auto const who = row < 0 ? "DataLoader: the batch of " + at
                             : "DataLoader: " + name_of(dataset, shard.indices[k]) + " (position " +
                                   std::to_string(shard.positions[k]) + " of " + at + ")";
    auto const why = message_of(shard.failure.error);
    try {
      std::rethrow_exception(shard.failure.error);
    } catch (...) {
      std::throw_with_nested(DataError(who + " cannot be made: " + why));
    }
  }
};

}}}  // namespace lockstep::data::detail
