// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/sample_hash.hpp>
#include <lockstep/data/detail/sample_reader.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// One sample of a dataset, for a comparison between ranks.
struct SampleHash {
  Index index = 0;      ///< of the sample
  std::string content;  ///< file name or other name, if the sample has one, and 16 hexadecimal digits of its content

  /// Compares both members.
  friend bool operator==(SampleHash const&, SampleHash const&) = default;
};

namespace detail {

/// Whether `get` returns a reference.
template <class Source>
inline constexpr bool gets_by_reference = std::is_reference_v<decltype(std::declval<Source const&>().get(Index{}))>;

/// Returns the hash of a sample.
template <class Source>
[[nodiscard]] std::uint64_t hash_of(SampleReader<Source>& reader, Index index) {
  using Sample = SampleOf<Source>;
  if constexpr (!HasContent<Sample>)
    return 0;
  else if constexpr (gets_by_reference<Source>)
    return hash_on(0, reader.get(index));
  else
    return hash_labels_on(0, reader.get(index));
}

/// Returns what a name has behind its last slash: folders may differ between hosts.
[[nodiscard]] inline std::string without_folder(std::string const& name) {
  return name.substr(name.find_last_of('/') + 1);
}

}  // namespace detail

/// Returns names and hashes of up to 8 samples, spread over the dataset, for a comparison between ranks. A hash covers
/// every byte of a sample that `get` returns by reference. Other samples may be decoded, with other rounding on another
/// host: only their integers, strings and lengths count. A sample that throws is "unreadable". Reads each sample twice,
/// unless `get` returns a reference and is noexcept. Empty for a stream, and if a second read gives another sample.
template <Dataset Source>
[[nodiscard, gnu::cold]] std::vector<SampleHash> sample_hashes([[maybe_unused]] Source const& dataset) {
  std::vector<SampleHash> out;
  if constexpr (detail::RandomAccess<Source> && (detail::HasContent<SampleOf<Source>> || NamesSamples<Source>)) {
    auto const size = static_cast<Index>(dataset.size()), count = std::min<Index>(size, 8);
    if (count == 0) return out;
    constexpr bool is_in_memory = detail::gets_by_reference<Source>&& noexcept(dataset.get(Index{}));
    detail::SampleReader<Source> reader(dataset);
    for (Index i = 0; i < count; ++i) {
      Index const index = i * (size - 1) / std::max<Index>(count - 1, 1);
      auto& sample = out.emplace_back(SampleHash{index, {}});
      try {
        if constexpr (NamesSamples<Source>) sample.content = detail::without_folder(dataset.name(index)) + " ";
        auto const hash = detail::hash_of(reader, index);
        if (!is_in_memory && detail::hash_of(reader, index) != hash) return {};
        sample.content += hexadecimal(hash);
      } catch (std::exception const&) {  // the loader reports it, if a rank comes to this sample
        sample.content = "unreadable";
      }
    }
  }
  return out;
}

}}}  // namespace lockstep::data
