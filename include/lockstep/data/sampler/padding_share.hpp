// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/data/sampler/sampler.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Returns the share of padding among an epoch's slots if each batch is padded to its longest sample, in [0, 1). Length
/// buckets save this share. Ragged batches have no padding.
/// @param order a sampler's order: sampler.over(dataset)   @param lengths of each sample
/// @param batch_size samples of a batch; without effect for a BatchOrder, which has its own batches
/// @param shards ranks or devices, each with a separate batch
template <class Order>
[[nodiscard]] double padding_share(Order const& order, std::span<std::int32_t const> lengths, Index batch_size,
                                   int shards = 1, Index epoch = 0) {
  auto index_at = order.in(epoch);
  double slots = 0, used = 0;
  auto const add_batch = [&](Index rows, auto const& position_of) {
    Index longest = 0;
    for (Index row = 0; row < rows; ++row) {
      Index const length = lengths[static_cast<std::size_t>(index_at(position_of(row)))];
      longest = std::max(longest, length);
      used += static_cast<double>(length);
    }
    slots += static_cast<double>(longest * rows);
  };
  if constexpr (BatchOrder<Order>) {
    for (Index batch = 0; batch < order.batches(); ++batch)
      add_batch(order.rows(epoch, batch), [&](Index row) { return batch * order.max_rows() + row; });
  } else {
    EpochLayout const layout(order.size(), batch_size, shards, Tail::exact);
    for (Index step = 0; step < layout.steps(); ++step)
      for (int shard = 0; shard < shards; ++shard)
        add_batch(layout.rows(step, shard), [&](Index row) { return layout.position(step, shard, row); });
  }
  return slots > 0 ? 1 - used / slots : 0;
}

}}}  // namespace lockstep::data
