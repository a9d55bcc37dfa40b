// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/atomic_file.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/detail/refuse_existing.hpp>
#include <lockstep/data/source/open_token_shard.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Writes token ids as a new token shard of llm.c, which `open_token_shard` reads. The file appears complete or not at
/// all.
/// @tparam Stored type of an id in the file: std::uint16_t, as for GPT-2's tokens, or std::uint32_t, as for Llama 3's
/// @param ids the tokens of concatenated documents; at most 2^31 - 1
/// @throws DataError if an id does not fit Stored, or the file exists or cannot be written
/// @source llm.c, dev/data/data_common.py
template <class Stored>
requires std::same_as<Stored, std::uint16_t> || std::same_as<Stored, std::uint32_t>
void write_token_shard(std::string const& path, std::span<std::int32_t const> ids) {
  static_assert(std::endian::native == std::endian::little);
  using Format = detail::TokenShardFormat;
  constexpr auto format = detail::token_shard_formats[std::same_as<Stored, std::uint16_t> ? 0 : 1];
  if (ids.size() > static_cast<std::size_t>(Format::max_tokens))
    throw DataError(path + ": " + std::to_string(ids.size()) + " tokens; a token shard holds at most " +
                    std::to_string(Format::max_tokens) + ": write several");
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!std::in_range<Stored>(ids[i]))
      throw DataError(path + ": token " + std::to_string(i) + " has the id " + std::to_string(ids[i]) + ", which " +
                      NumberType::of<Stored>().name() + " cannot hold" +
                      (ids[i] > 0 ? "; write it as std::uint32_t" : "; ids are at least 0"));
  detail::refuse_existing(path);
  AtomicFile file(path);
  std::array<std::int32_t, Format::header_bytes / sizeof(std::int32_t)> header{format.magic, format.version,
                                                                               static_cast<std::int32_t>(ids.size())};
  file.write(std::as_bytes(std::span(header)));
  constexpr std::size_t most = std::size_t{1} << 16;
  std::vector<Stored> part;
  for (auto rest = ids; !rest.empty(); rest = rest.subspan(part.size())) {
    auto const here = rest.first(std::min(most, rest.size()));
    part.assign(here.begin(), here.end());
    file.write(std::as_bytes(std::span(part)));
  }
  file.commit();
}

}}}  // namespace lockstep::data
