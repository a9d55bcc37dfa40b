// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/data/source/detail/find_files.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Returns one Source for each file that a pattern matches, in the order of their paths. Each is constructed from the
/// path and `arguments`: `Concat{each_file<TarDataset>("shards/train-*.tar")}`. Patterns are as for FolderDataset.
/// @throws DataError if no file matches or a folder cannot be searched
template <class Source, class... Arguments>
requires std::constructible_from<Source, std::string, Arguments const&...>
[[nodiscard]] std::vector<Source> each_file(std::string_view pattern, Arguments const&... arguments) {
  std::vector<Source> out;
  for (auto const& file : detail::find_at_least_one_file(
           pattern, "each_file: the pattern \"" + std::string(pattern) + "\"", detail::FolderLinks::follow))
    out.emplace_back(file.path, arguments...);
  return out;
}

}}}  // namespace lockstep::data
