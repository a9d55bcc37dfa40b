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
  std::span<SampleExtent<Sample> const> extents;  ///< [rows]
  std::span<Index const> positions;               ///< [rows], positions in the epoch's global order
  Index epoch = 0;                                ///< of all rows, from 0
};

/// Makes batches in two phases, so that each byte is copied once. First, `plan` lays out the batch in a reused slab.
/// Then `row` writes samples into their rows. Several threads write at once, one thread per row.
template <class Candidate, class Source>
concept Collate = Dataset<Source> &&
    std::default_initializable<typename Candidate::template Batch<Source, HostSpace>> &&
    requires(Candidate const& collate, BatchPlan<SampleOf<Source>> const& plan, Slab& slab,
             typename Candidate::template Batch<Source, HostSpace>& batch, Index row, SampleOf<Source> const& sample) {
  { collate.plan(plan, slab) } -> std::same_as<typename Candidate::template Batch<Source, HostSpace>>;
  collate.row(batch, row, sample);
};

/// A collate that processes the whole batch after all its rows are written. One thread calls `finish`.
template <class Candidate, class Source>
concept FinishesBatches = Collate<Candidate, Source> &&
    requires(Candidate const& collate, Slab& slab, typename Candidate::template Batch<Source, HostSpace>& batch) {
  collate.finish(batch, slab);
};

/// A dataset that knows a sample's extent without reading the sample, and reads it directly into the collate's row.
template <class Source, class Candidate>
concept ReadsIntoRows = Collate<Candidate, Source> &&
    requires(Source const& dataset, Candidate const& collate, Index i, Index row,
             typename Candidate::template Batch<Source, HostSpace>& batch) {
  { dataset.extent(i) } -> std::same_as<SampleExtent<SampleOf<Source>>>;
  dataset.read_into(i, collate.open_row(batch, row));
};

}}}  // namespace lockstep::data
