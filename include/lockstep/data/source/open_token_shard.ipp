// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <lockstep/data/source/open_token_shard.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE FileArray open_token_shard(std::string const& path) {
  using Format = detail::TokenShardFormat;
  auto file = std::make_shared<detail::DataFile const>(path);
  file->require_range(0, Format::header_bytes, "the header of a token shard (256 int32)");
  auto const field = [&](std::uint64_t i) { return file->read_number<std::int32_t>(4 * i); };
  auto const* const format = std::ranges::find(detail::token_shard_formats, field(0), &Format::magic);
  if (format == std::end(detail::token_shard_formats))
    file->fail("is no token shard of llm.c: it begins with " + std::to_string(field(0)) +
               ", and such a file begins with 20240520 (uint16) or 20240801 (uint32); open tokens without a header, as "
               "nanoGPT's train.bin, with open_raw<std::uint16_t>(path, {1})");
  if (field(1) != format->version)
    file->fail("is a token shard of version " + std::to_string(field(1)) + "; version " +
               std::to_string(format->version) + " is read: write it again");
  Index const tokens = field(2), bytes = static_cast<Index>(file->size() - Format::header_bytes);
  if (tokens < 0 || tokens * format->type.bytes != bytes)
    file->fail("claims " + std::to_string(tokens) + " tokens of " + std::to_string(format->type.bytes) +
               " bytes, and has " + std::to_string(bytes) +
               " bytes after its header; it was cut off or damaged: write it again");
  return {std::move(file), format->type, {tokens, 1}, Format::header_bytes};
}

}}}  // namespace lockstep::data
