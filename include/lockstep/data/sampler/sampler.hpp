// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/core/index.hpp>
#include <lockstep/data/dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// The order of every epoch as a pure function: `size()` positions, and `in(epoch)`. `in(epoch)` is cheap to make and
/// maps a position in [0, size()) to the number of a sample. Resume is arithmetic. Nothing depends on ranks, workers or
/// threads.
template <class Candidate>
concept Order = std::copy_constructible<Candidate> && requires(Candidate const& order, Index epoch, Index position) {
  { order.size() } -> std::convertible_to<Index>;
  { order.in(epoch)(position) } -> std::convertible_to<Index>;
};

/// Chooses the order in which a dataset is visited: `over(dataset)` returns an Order.
template <class Candidate, class Source>
concept Sampler = Dataset<Source> && std::copy_constructible<Candidate> &&
    requires(Candidate const& sampler, Source const& dataset) {
  { sampler.over(dataset) } -> Order;
};

/// An order that the sampler divides into batches, for example by the cost of their samples. Each batch has at most
/// `max_rows()` samples; the number of batches is equal in every epoch. Position batch * max_rows() + row is a row of a
/// batch. If the batch is shorter, the position repeats another of its rows and is not a sample of the epoch. Therefore
/// `size() == batches() * max_rows()`, and `samples()` returns the number of samples in an epoch.
template <class Candidate>
concept BatchOrder = Order<Candidate> && requires(Candidate const& order, Index epoch, Index batch) {
  { order.samples() } -> std::convertible_to<Index>;
  { order.batches() } -> std::convertible_to<Index>;
  { order.max_rows() } -> std::convertible_to<Index>;
  { order.rows(epoch, batch) } -> std::convertible_to<Index>;
};

}}}  // namespace lockstep::data
