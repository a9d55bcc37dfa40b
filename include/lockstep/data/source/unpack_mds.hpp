// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <string>

#include <lockstep/core/json.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/decompress_zstd.hpp>
#include <lockstep/data/source/detail/mds_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

#if defined(LOCKSTEP_ZSTD)

/// Decompresses the zstd shards of an MDS folder into the same folder. Skips shards that are already decompressed.
/// Compares size and SHA-256 of each compressed shard with the index, if the index has them.
/// `MdsDataset{unpack_mds(folder)}` then reads any sample with one call. Several processes and threads may call it at
/// once.
/// @returns the folder
/// @throws DataError if index or shards are damaged or compressed in another way, or a file cannot be written
inline std::string unpack_mds(std::string const& folder) {
  detail::DataFile const file(folder + "/index.json");
  auto const index =
      json::parse(file.read_claimed_text(0, file.size(), detail::max_index_bytes, "the index"), file.path());
  json::with_file_name(file.path(), [&] {
    for (auto const& shard : index.at("shards").array()) {
      if (shard.at("compression").is_null()) continue;
      auto const path = detail::mds_file(folder, shard.at("raw_data"));
      if (::access(path.c_str(), F_OK) == 0) continue;
      auto const& entry = shard.at("zip_data");
      detail::DataFile const packed(detail::mds_file(folder, entry));
      auto const& how = shard.at("compression").string();
      if (how != "zstd" && !how.starts_with("zstd:"))
        packed.fail("is compressed with " + how + "; zstd can be decompressed");
      detail::check_mds_size(packed, entry);
      auto const bytes = shard.at("raw_data").at("bytes").integer();
      if (bytes < 0 || bytes > 0xffffffff)  // the table of samples has offsets of 32 bits
        file.fail("says that " + path + " has " + std::to_string(bytes) + " bytes");
      detail::decompress_zstd(packed, path, static_cast<std::uint64_t>(bytes), detail::mds_sha256(entry));
    }
  });
  return folder;
}

#else

/// Placeholder without zstd: its use fails to compile and names the target to link.
template <class Folder>
std::string unpack_mds(Folder const&) {
  static_assert(sizeof(Folder) == 0,
                "Lockstep: unpack_mds decompresses with zstd: link the target lockstep::zstd (Debian: libzstd-dev)");
  return {};
}

#endif

}}}  // namespace lockstep::data
