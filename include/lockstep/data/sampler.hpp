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
  { order.index(epoch, position) } -> std::convertible_to<Index>;
};

/// Chooses the order in which a dataset is visited: `over(dataset)` gives an Order.
template <class S, class D>
concept Sampler = Dataset<D> && std::copy_constructible<S> && requires(S const& sampler, D const& dataset) {
  { sampler.over(dataset) } -> Order;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
