// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <span>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {

/// Something that an evaluation counts: `add(prediction, batch)` takes what the model predicted for a batch (it is a
/// template, so it cannot be asked for here), `totals()` are numbers that add up over batches and ranks, always as
/// many, `value()` is what they come to. Copied once per device. Of two values the larger is the better one, unless the
/// metric is an error or such and says `static constexpr bool higher_is_better = false`.
template <class M>
concept Metric = std::copy_constructible<M> && requires(M& metric, M const& constant) {
  { metric.totals() } -> std::convertible_to<std::span<double>>;
  { constant.value() } -> std::convertible_to<double>;
  { constant.name() } -> std::convertible_to<char const*>;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train
