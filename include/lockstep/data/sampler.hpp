// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/core/index.hpp>
#include <lockstep/data/dataset.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// The order of every epoch as a pure function: `size()` positions, and `in(epoch)`, cheap to make, which maps a
/// position in [0, size()) to the number of a sample. Resuming is arithmetic; nothing depends on ranks, workers or
/// threads.
template <class O>
concept Order = std::copy_constructible<O> && requires(O const& order, Index epoch, Index position) {
  { order.size() } -> std::convertible_to<Index>;
  { order.in(epoch)(position) } -> std::convertible_to<Index>;
};

/// Chooses the order in which a dataset is visited: `over(dataset)` gives an Order.
template <class S, class D>
concept Sampler = Dataset<D> && std::copy_constructible<S> && requires(S const& sampler, D const& dataset) {
  { sampler.over(dataset) } -> Order;
};

/// An order that falls into batches of the sampler's own making, by what their samples cost for instance, of at most
/// `max_rows()` samples each: how many there are is the same in every epoch. Position batch * max_rows() + row is a
/// row of a batch; where the batch is shorter, it stands for another of its rows and is no sample of the epoch. Then
/// `size() == batches() * max_rows()`, and `samples()` says how many samples an epoch has.
template <class O>
concept BatchOrder = Order<O> && requires(O const& order, Index epoch, Index batch) {
  { order.samples() } -> std::convertible_to<Index>;
  { order.batches() } -> std::convertible_to<Index>;
  { order.max_rows() } -> std::convertible_to<Index>;
  { order.rows(epoch, batch) } -> std::convertible_to<Index>;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
