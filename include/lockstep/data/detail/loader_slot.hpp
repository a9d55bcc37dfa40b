// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/collate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/slab.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// What happens to a batch, in this order. Rows are read and written by several workers; one plans, one finishes.
enum class Phase { read, plan, write, finish, done };

/// A failure in a batch: of the row with the lowest position, so that which one is told does not depend on timing.
struct RowFailure {
  std::exception_ptr error;
  Index row = -1;  // -1: the batch as a whole

  void merge(RowFailure const& other) {
    if (other.error && (!error || other.row < row)) *this = other;
  }
};

/// One batch being made, its slab and its bookkeeping, all reused. What is `claimed` and `finished` counts rows of the
/// present phase.
template <class D, class C>
struct LoaderShard {
  using Sample = SampleOf<D>;
  static constexpr bool reads_into_rows = ReadsIntoRows<D, C>;
  static constexpr bool by_reference = std::is_lvalue_reference_v<decltype(std::declval<D const&>().get(Index{}))>;
  using Kept = std::conditional_t<by_reference, Sample const*, std::optional<Sample>>;

  Slab slab;
  std::vector<Index> indices, positions;
  std::vector<SampleExtent<Sample>> extents;
  std::vector<Kept> samples;  // between reading and writing

  int shard = 0;
  Index rows = 0;
  Phase phase = Phase::done;
  Index claimed = 0, finished = 0;
  RowFailure failure;

  explicit LoaderShard(Index batch_size)
      : indices(static_cast<std::size_t>(batch_size)),
        positions(indices.size()),
        extents(indices.size()),
        samples(reads_into_rows ? 0 : indices.size()) {}

  void begin(int number, Index row_count) noexcept {
    shard = number;
    rows = row_count;
    failure = {};
    enter(rows == 0 ? Phase::plan : Phase::read);
  }
  void enter(Phase next) noexcept {
    phase = next;
    claimed = finished = 0;
  }
  /// How much there is to claim in this phase.
  [[nodiscard]] Index total() const noexcept {
    return phase == Phase::done ? 0 : phase == Phase::plan || phase == Phase::finish ? 1 : rows;
  }
  /// After the last of a phase has finished.
  void advance() noexcept {
    constexpr auto last = FinishesBatches<C, D> ? Phase::finish : Phase::done;
    auto const after_plan = rows == 0 ? last : Phase::write;
    enter(failure.error || phase == Phase::finish ? Phase::done
          : phase == Phase::read                  ? Phase::plan
          : phase == Phase::plan                  ? after_plan
                                                  : last);
  }

  void read(D const& dataset, Index row, Index position, Index index) {
    auto const k = static_cast<std::size_t>(row);
    positions[k] = position;
    indices[k] = index;
    if constexpr (reads_into_rows) {
      extents[k] = dataset.extent(index);
    } else if constexpr (by_reference) {
      samples[k] = &dataset.get(index);
      extents[k] = extent_of(*samples[k]);
    } else {
      samples[k].emplace(dataset.get(index));
      extents[k] = extent_of(*samples[k]);
    }
  }
  template <class Batch>
  void plan(C const& collate, Index epoch, Batch& batch) {
    auto const n = static_cast<std::size_t>(rows);
    batch = collate.plan(BatchPlan<Sample>{{extents.data(), n}, {positions.data(), n}, epoch}, slab);
  }
  template <class Batch>
  void finish(C const& collate, Batch& batch) {
    if constexpr (FinishesBatches<C, D>) collate.finish(batch, slab);
  }
  template <class Batch>
  void write(D const& dataset, C const& collate, Batch& batch, Index row) {
    auto const k = static_cast<std::size_t>(row);
    if constexpr (reads_into_rows) {
      dataset.read_into(indices[k], collate.open_row(batch, row));
    } else {
      collate.row(batch, row, *samples[k]);
      if constexpr (!by_reference) samples[k].reset();
    }
  }
};

/// One micro-step of the ring: a batch for each local device.
template <class D, class C>
struct LoaderSlot {
  using Batch = typename C::template Batch<D, HostSpace>;

  std::vector<LoaderShard<D, C>> shards;
  std::vector<Batch> batches;
  Index epoch = 0, step = 0;
  int unfinished = 0;  // shards
  bool held = false;

  LoaderSlot(Index batch_size, int count) : batches(static_cast<std::size_t>(count)) {
    shards.reserve(batches.size());
    for (int i = 0; i < count; ++i) shards.emplace_back(batch_size);
  }

  void begin(Index at_epoch, Index at_step, Split const& split, EpochLayout const& layout) noexcept {
    epoch = at_epoch;
    step = at_step;
    unfinished = split.count;
    for (int i = 0; i < split.count; ++i) {
      shards[static_cast<std::size_t>(i)].begin(split.first + i, layout.rows(step, split.first + i));
    }
  }
  [[nodiscard]] bool ready() const noexcept { return unfinished == 0; }

  /// The shard whose failure comes first in the epoch's order, or null.
  [[nodiscard]] LoaderShard<D, C> const* failed() const noexcept {
    LoaderShard<D, C> const* first = nullptr;
    for (auto const& shard : shards) {
      if (shard.failure.error && (!first || shard.failure.row < first->failure.row)) first = &shard;
    }
    return first;
  }
  /// @throws DataError that names the sample, with the original nested
  [[noreturn]] void rethrow(LoaderShard<D, C> const& shard) const {
    auto const row = shard.failure.row;
    auto const at = "epoch " + std::to_string(epoch) + ", step " + std::to_string(step);
    auto const k = static_cast<std::size_t>(std::max<Index>(row, 0));
    auto const who = row < 0 ? "DataLoader: the batch of " + at
                             : "DataLoader: sample " + std::to_string(shard.indices[k]) + " (position " +
                                   std::to_string(shard.positions[k]) + " of " + at + ")";
    try {
      std::rethrow_exception(shard.failure.error);
    } catch (std::exception const& error) {
      std::throw_with_nested(DataError(who + " cannot be made: " + error.what()));
    } catch (...) {
      std::throw_with_nested(DataError(who + " cannot be made: an exception of unknown type was thrown"));
    }
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
