// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/sampler/sampler.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Counterpart of EpochLayout for the batches of a BatchOrder. Micro-step s takes the batches [s * shards, (s + 1) *
/// shards), one for each shard, counted from batch `first`. `begin` and `end` count batches.
template <class OrderType>
class BatchLayout {
 public:
  BatchLayout() = default;
  BatchLayout(OrderType const& order, Index epoch, int shards, Tail tail, Index first) noexcept
      : order_(&order), epoch_(epoch), shards_(shards), first_(first), end_(order.batches()) {
    auto const count = std::max<Index>(end_ - first_, 0), rest = count % shards_;
    end_ = first_ + count + (tail == Tail::pad && rest > 0 ? shards_ - rest : tail == Tail::drop ? -rest : 0);
  }

  [[nodiscard]] Index steps() const noexcept { return (end_ - first_ + shards_ - 1) / shards_; }
  [[nodiscard]] Index rows(Index step, int shard) const noexcept {
    auto const batch = begin(step) + shard;
    return batch >= end_ ? 0 : order_->rows(epoch_, batch % order_->batches());
  }
  [[nodiscard]] Index position(Index step, int shard, Index row) const noexcept {
    return (begin(step) + shard) * order_->max_rows() + row;
  }
  [[nodiscard]] Index begin(Index step) const noexcept { return first_ + step * shards_; }
  [[nodiscard]] Index end(Index step) const noexcept { return std::min(end_, begin(step) + shards_); }

 private:
  OrderType const* order_ = nullptr;
  Index epoch_ = 0, shards_ = 1, first_ = 0, end_ = 0;
};

template <class OrderType>
struct LayoutType {
  using type = EpochLayout;
};
template <BatchOrder OrderType>
struct LayoutType<OrderType> {
  using type = BatchLayout<OrderType>;
};

/// The layout type that divides an order's epochs into micro-steps and shards.
template <class OrderType>
using LayoutOf = typename LayoutType<OrderType>::type;

template <class OrderType>
LayoutOf<OrderType> layout_of(OrderType const& order, Index batch_size, Tail tail, Split const& split, Index epoch,
                              Index first) {
  if constexpr (BatchOrder<OrderType>) {
    return {order, epoch, split.all, tail, first};
  } else {
    return {static_cast<Index>(order.size()), batch_size, split.all, tail, first};
  }
}

/// Returns the number of samples in an epoch.
template <class OrderType>
Index samples_of(OrderType const& order) {
  if constexpr (BatchOrder<OrderType>) {
    return order.samples();
  } else {
    return order.size();
  }
}

}}}  // namespace lockstep::data::detail
