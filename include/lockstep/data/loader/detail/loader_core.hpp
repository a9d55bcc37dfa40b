// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/data/dataset.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/loader/detail/batch_layout.hpp>
#include <lockstep/data/loader/detail/batch_maker.hpp>
#include <lockstep/data/loader/detail/loader_job.hpp>
#include <lockstep/data/loader/detail/loader_scheduler.hpp>
#include <lockstep/data/loader/detail/loader_slot.hpp>
#include <lockstep/data/sampler/sampler.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// A DataLoader's scheduler with the types of the user: dataset, order and collate.
template <class Source, class OrderType, class CollateType>
class LoaderCore final : public LoaderScheduler {
 public:
  using Slot = LoaderSlot<Source, CollateType>;

  [[gnu::cold]] LoaderCore(Source dataset, OrderType order, CollateType collate, DataLoaderOptions const& options)
      : LoaderScheduler(options),
        maker_{std::move(dataset), std::move(order), std::move(collate), options.seed, options.on_failure} {}
  ~LoaderCore() override { stop(); }
  LoaderCore(LoaderCore const&) = delete;
  LoaderCore& operator=(LoaderCore const&) = delete;

  [[nodiscard]] Source const& dataset() const noexcept { return maker_.dataset; }
  [[nodiscard]] OrderType const& order() const noexcept { return maker_.order; }
  [[nodiscard]] CollateType const& collate() const noexcept { return maker_.collate; }
  [[nodiscard]] LayoutOf<OrderType> layout(Split const& split, Index epoch, Tail tail, Index first = 0) const noexcept {
    return layout_of(order(), options().batch_size, tail, split, epoch, first);
  }
  [[nodiscard]] std::string name_of_sample(Index index) const override {
    // A message about a sampler's wrong index must not ask the dataset for its name.
    bool const exists = index >= 0 && index < static_cast<Index>(dataset().size());
    return exists ? name_of(dataset(), index) : "sample " + std::to_string(index);
  }
  [[nodiscard]] Index steps_of(Split const& split, Index epoch, Tail tail) const noexcept override {
    return layout(split, epoch, tail).steps();
  }
  [[nodiscard]] Index samples() const override { return samples_of(order()); }

 private:
  [[nodiscard]] std::shared_ptr<SlotProgress> make_slot(int shards, memory::AnyHostResource memory) const override {
    // An epoch may be smaller than the batch size.
    return std::make_shared<Slot>(std::min(options().batch_size, static_cast<Index>(order().size())), shards, memory);
  }
  [[nodiscard]] std::unique_ptr<WorkerProgress> make_worker() const override {
    return std::make_unique<LoaderWorker<Source>>(dataset());
  }
  [[nodiscard]] Index open_epoch(Split const& split, Index epoch, Tail tail, Index first) noexcept override {
    layout_ = layout(split, epoch, tail, first);
    return layout_.steps();
  }
  void rewind(Index epoch, Index step) override {
    if constexpr (SequentialAccess<Source>) dataset().rewind(epoch, layout_.begin(step));
  }
  [[nodiscard]] Index end_of(Index step) const noexcept override { return layout_.end(step); }
  [[nodiscard]] BatchRows rows_of(Index step, int shard) const noexcept override {
    auto const first = layout_.position(step, shard, 0);
    return {layout_.rows(step, shard), first, layout_.position(step, shard, 1) - first};
  }
  void set_on_failure(OnFailure on_failure) noexcept override { maker_.on_failure = on_failure; }
  bool run(LoaderJob& job, WorkerProgress& worker, std::atomic<std::uint64_t> const& generation,
           std::uint64_t was) const override {
    return maker_.run(job, static_cast<LoaderWorker<Source>&>(worker), generation, was);
  }
  [[nodiscard]] Index handle_failed_rows(LoaderJob& job) const override { return maker_.handle_failed_rows(job); }

  BatchMaker<Source, OrderType, CollateType> maker_;  // changes only while no worker uses it
  LayoutOf<OrderType> layout_;                        // of the epoch whose micro-steps are queued next
};

}}}  // namespace lockstep::data::detail
