// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

namespace detail {

template <Order OrderType>
[[nodiscard, gnu::cold]] std::uint64_t hash_order(Index samples, OrderType const& order) {
  auto const size = static_cast<Index>(order.size());
  auto hash =
      mix(mix("lockstep.data.fingerprint"), static_cast<std::uint64_t>(samples), static_cast<std::uint64_t>(size));
  constexpr Index places = 8;
  for (Index i = 0; i < places && size > 0; ++i) {
    hash = mix(hash, static_cast<std::uint64_t>(order.in(i)(size / places * i)));
  }
  return hash;
}

}  // namespace detail

/// Returns 16 hexadecimal digits that change with the number of samples and with the order. Reads a few positions of
/// it.
template <Order OrderType>
[[nodiscard]] std::string order_fingerprint(Index samples, OrderType const& order) {
  return hexadecimal(detail::hash_order(samples, order));
}

/// Returns 16 hexadecimal digits that change with a dataset and the order in which it is visited. Depends on the number
/// of samples, some positions of the order, and the dataset's own fingerprint, if any. If the dataset draws samples,
/// also depends on the seed that it draws from. Reads no sample.
template <Dataset Source, Order OrderType>
[[nodiscard, gnu::cold]] std::string fingerprint(Source const& dataset, OrderType const& order,
                                                 std::uint64_t seed = 0) {
  auto hash = detail::hash_order(static_cast<Index>(dataset.size()), order);
  if constexpr (HasFingerprint<Source>) hash = mix(hash, dataset.fingerprint());
  if constexpr (DrawsSamples<Source>)
    if (seed != 0) hash = mix(hash, seed);
  return hexadecimal(hash);
}

}}}  // namespace lockstep::data
