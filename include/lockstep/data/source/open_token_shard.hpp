// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

namespace detail {
/// A kind of llm.c's token shards: 256 int32, which begin with magic number, version and number of tokens, then the
/// tokens.
struct TokenShardFormat {
  std::int32_t magic, version;
  NumberType type;

  static constexpr std::uint64_t header_bytes = 1024;
  static constexpr std::int32_t max_tokens = 0x7fffffff;
};
/// Formats of GPT-2's tokens and of Llama 3's. The latter's uint32 are below 2^31, so that they are read as int32.
inline constexpr TokenShardFormat token_shard_formats[] = {{20240520, 1, {'u', 2}}, {20240801, 7, {'i', 4}}};
}  // namespace detail

/// Opens a token shard of llm.c and of the speed runs after it, as `write_token_shard` and llm.c's scripts write it: a
/// header of 256 int32, then token ids of uint16 (GPT-2) or uint32 (Llama 3). Both fill members of std::int32_t. Ids
/// are not checked; an embedding refuses those that its table does not have.
/// @shape returns [tokens, 1]
/// @throws DataError if the file is damaged or cut off, or has no such header
/// @source llm.c, dev/data/data_common.py
[[nodiscard]] FileArray open_token_shard(std::string const& path);

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/open_token_shard.ipp>
#endif
