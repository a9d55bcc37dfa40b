// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/data/collate/slab.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Facts about a batch that are known before its samples are written: one entry per row. The spans live as long as the
/// batch.
template <class Sample>
struct BatchPlan {
  std::span<SampleExtent<Sample> const> extents;  // [rows]
  std::span<Index const> positions;               // [rows], positions in the epoch's global order
  Index epoch = 0;
};

/// Makes batches in two phases, so that each byte is copied once. First, `plan` lays out the batch in a reused slab.
/// Then `row` writes samples into their rows. Several threads write at once, one thread per row.
template <class C, class D>
concept Collate = Dataset<D> && std::default_initializable<typename C::template Batch<D, HostSpace>> &&
    requires(C const& collate, BatchPlan<SampleOf<D>> const& plan, Slab& slab,
             typename C::template Batch<D, HostSpace>& batch, Index row, SampleOf<D> const& sample) {
  { collate.plan(plan, slab) } -> std::same_as<typename C::template Batch<D, HostSpace>>;
  collate.row(batch, row, sample);
};

/// A collate that processes the whole batch after all its rows are written. One thread calls `finish`.
template <class C, class D>
concept FinishesBatches = Collate<C, D> &&
    requires(C const& collate, Slab& slab, typename C::template Batch<D, HostSpace>& batch) {
  collate.finish(batch, slab);
};

/// A dataset that knows a sample's extent without reading the sample, and reads it directly into the collate's row.
template <class D, class C>
concept ReadsIntoRows = Collate<C, D> &&
    requires(D const& dataset, C const& collate, Index i, Index row, typename C::template Batch<D, HostSpace>& batch) {
  { dataset.extent(i) } -> std::same_as<SampleExtent<SampleOf<D>>>;
  dataset.read_into(i, collate.open_row(batch, row));
};

}}}  // namespace lockstep::data
