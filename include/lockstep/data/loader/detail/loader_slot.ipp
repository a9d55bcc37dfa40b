// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/data/loader/detail/loader_slot.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_COLD_INLINE ShardProgress::ShardProgress(Index batch_size, memory::AnyHostResource memory, bool finishes)
    : slab(memory),
      position_memory(memory.allocate(static_cast<std::size_t>(batch_size) * sizeof(Index))),
      positions(reinterpret_cast<Index*>(position_memory.data()), static_cast<std::size_t>(batch_size)),
      indices(positions.size()),
      replaced(positions.size()),
      is_finished_by_collate(finishes) {}

LOCKSTEP_COLD_INLINE ShardProgress::ShardProgress(ShardProgress&&) noexcept = default;

LOCKSTEP_COLD_INLINE ShardProgress::~ShardProgress() = default;

LOCKSTEP_INLINE void ShardProgress::begin(int number, BatchRows const& batch) noexcept {
  shard = number;
  planned = batch;
  rows = batch.rows;
  failure = {};
  failed.clear();
  missing = 0;
  restarts = 0;
  std::fill(replaced.begin(), replaced.end(), std::uint8_t{0});
  enter(rows == 0 ? Phase::plan : Phase::read);
}

LOCKSTEP_INLINE void ShardProgress::advance() noexcept {
  auto const last = is_finished_by_collate ? Phase::finish : Phase::done;
  auto const after_plan = rows == 0 ? last : Phase::write;
  enter(failure.error || phase == Phase::finish ? Phase::done
        : phase == Phase::read                  ? Phase::plan
        : phase == Phase::plan                  ? after_plan
                                                : last);
}

LOCKSTEP_INLINE void ShardProgress::restart() noexcept {
  ++restarts;
  failed.clear();
  enter(rows == 0 ? Phase::plan : Phase::read);
}

LOCKSTEP_INLINE Index SlotProgress::rows() const noexcept {
  Index out = 0;
  for (auto const* shard : shards) out += shard->rows;
  return out;
}

LOCKSTEP_INLINE Index SlotProgress::existing_rows() const noexcept {
  Index out = 0;
  for (auto const* shard : shards) out += shard->planned.rows - shard->missing;
  return out;
}

LOCKSTEP_INLINE ShardProgress const* SlotProgress::failed() const noexcept {
  ShardProgress const* first = nullptr;
  for (auto const* shard : shards) {
    if (shard->failure.error && (!first || shard->failure.row < first->failure.row)) first = shard;
  }
  return first;
}

LOCKSTEP_COLD_INLINE std::vector<Index> ShardProgress::take_kept_rows() {
  std::vector<bool> fails(static_cast<std::size_t>(rows));
  for (auto const row : failed) fails[static_cast<std::size_t>(row)] = true;
  std::vector<Index> kept;
  for (std::size_t from = 0; from < fails.size(); ++from) {
    if (fails[from]) continue;
    indices[kept.size()] = indices[from];
    positions[kept.size()] = positions[from];
    kept.push_back(static_cast<Index>(from));
  }
  rows = static_cast<Index>(kept.size());
  failed.clear();
  return kept;
}

LOCKSTEP_COLD_INLINE SlotProgress::SlotProgress(memory::AnyHostResource slab_memory) : memory(slab_memory) {}

LOCKSTEP_COLD_INLINE SlotProgress::~SlotProgress() = default;

LOCKSTEP_COLD_INLINE void SlotProgress::add(ShardProgress& shard) { shards.push_back(&shard); }

}}}  // namespace lockstep::data::detail
