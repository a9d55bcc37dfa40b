// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

// Operations that composed datasets forward to their parts.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Offers extents and reads samples directly into rows. A collate may not support this.
template <class D>
concept ReadsInPlace = Dataset<D> && Aggregate<SampleOf<D>> &&
    requires(D const& dataset, Index i, Row<SampleOf<D>> row) {
  { dataset.extent(i) } -> std::same_as<SampleExtent<SampleOf<D>>>;
  dataset.read_into(i, row);
};

/// Returns the part's sample. If the part draws, it draws from the key.
template <Dataset D>
decltype(auto) get_of_part(D const& dataset, Index i, SampleKey const& key) {
  if constexpr (DrawsSamples<D>) {
    return dataset.get(i, key);
  } else {
    return dataset.get(i);
  }
}

template <Dataset D>
std::string name_of_part(D const& dataset, Index i) {
  if constexpr (NamesSamples<D>) {
    return dataset.name(i);
  } else {
    return "sample " + std::to_string(i) + " of its part";
  }
}

/// Returns the name of a sample of one of several parts.
template <Dataset D>
std::string name_in_part(D const& dataset, Index i, std::size_t part) {
  if constexpr (NamesSamples<D>) {
    return dataset.name(i);
  } else {
    return "sample " + std::to_string(i) + " of dataset " + std::to_string(part);
  }
}

template <Dataset D>
std::uint64_t fingerprint_of_part(D const& dataset) {
  auto const size = static_cast<std::uint64_t>(dataset.size());
  if constexpr (HasFingerprint<D>) {
    return mix(size, dataset.fingerprint());
  } else {
    return mix(size);
  }
}

}}}  // namespace lockstep::data::detail
