// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Returns the share of padding among an epoch's slots if each batch is padded to its longest sample, in [0, 1). Length
/// buckets save this share. Ragged batches have no padding.
/// @param order a sampler's order: sampler.over(dataset)   @param lengths of each sample
/// @param shards ranks or devices, each with a separate batch of `batch_size` samples
template <class Order>
[[nodiscard]] double padding_share(Order const& order, std::span<std::int32_t const> lengths, Index batch_size,
                                   int shards = 1, Index epoch = 0) {
  EpochLayout const layout(order.size(), batch_size, shards, Tail::exact);
  auto index_at = order.in(epoch);
  double slots = 0, used = 0;
  for (Index step = 0; step < layout.steps(); ++step)
    for (int shard = 0; shard < shards; ++shard) {
      Index longest = 0, rows = 0;
      for (Index k = 0; k < batch_size; ++k) {
        auto const position = layout.position(step, shard, k);
        if (position >= order.size()) break;
        Index const length = lengths[static_cast<std::size_t>(index_at(position))];
        longest = std::max(longest, length);
        used += static_cast<double>(length);
        ++rows;
      }
      slots += static_cast<double>(longest * rows);
    }
  return slots > 0 ? 1 - used / slots : 0;
}

}}}  // namespace lockstep::data
