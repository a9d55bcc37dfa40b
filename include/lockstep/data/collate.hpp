// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/slab.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// What is known of a batch before its samples are written: one entry per row. The spans live as long as the batch.
template <class Sample>
struct BatchPlan {
  std::span<SampleExtent<Sample> const> extents;  // [rows]
  std::span<Index const> positions;               // [rows], places in the epoch's global order
  Index epoch = 0;
};

/// Makes batches in two phases, so that each byte is copied once. `plan` fixes the batch's layout in a slab that is
/// reused; then `row` writes samples into their rows, several threads at once, each row by one.
template <class C, class D>
concept Collate = Dataset<D> && std::default_initializable<typename C::template Batch<D, HostSpace>> &&
    requires(C const& collate, BatchPlan<SampleOf<D>> const& plan, Slab& slab,
             typename C::template Batch<D, HostSpace>& batch, Index row, SampleOf<D> const& sample) {
  { collate.plan(plan, slab) } -> std::same_as<typename C::template Batch<D, HostSpace>>;
  collate.row(batch, row, sample);
};

/// A collate that works on the whole batch once all its rows are written: `finish` is called by one thread.
template <class C, class D>
concept FinishesBatches = Collate<C, D> &&
    requires(C const& collate, Slab& slab, typename C::template Batch<D, HostSpace>& batch) {
  collate.finish(batch, slab);
};

/// A dataset that knows a sample's extent without reading it and reads it straight into the collate's row.
template <class D, class C>
concept ReadsIntoRows = Collate<C, D> &&
    requires(D const& dataset, C const& collate, Index i, Index row, typename C::template Batch<D, HostSpace>& batch) {
  { dataset.extent(i) } -> std::same_as<SampleExtent<SampleOf<D>>>;
  dataset.read_into(i, collate.open_row(batch, row));
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
