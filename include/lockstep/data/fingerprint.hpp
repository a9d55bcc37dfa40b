// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/sampler.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// 16 hexadecimal digits that change when a dataset or the order it is visited in does: of the number of samples, some
/// places of the order and, where the dataset offers it, its own fingerprint. Reads no sample.
template <Dataset D, Order O>
[[nodiscard]] std::string fingerprint(D const& dataset, O const& order) {
  auto const size = static_cast<Index>(order.size());
  auto hash = mix(mix("lockstep.data.fingerprint"), static_cast<std::uint64_t>(dataset.size()),
                  static_cast<std::uint64_t>(size));
  constexpr Index places = 8;
  for (Index i = 0; i < places && size > 0; ++i) {
    hash = mix(hash, static_cast<std::uint64_t>(order.index(i, size / places * i)));
  }
  if constexpr (HasFingerprint<D>) hash = mix(hash, dataset.fingerprint());
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash >> shift & 15];
  return out;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data
