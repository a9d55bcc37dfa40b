// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/sha256.hpp>
#include <lockstep/data/detail/data_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns the path of a shard's file, in the folder or below it, as merge_index of MosaicML's Streaming writes paths.
/// @throws DataError if the index names a file outside the folder
inline std::string mds_file(std::string const& folder, json::Value const& file) {
  auto const& basename = file.at("basename").string();
  auto const path = folder + "/" + basename;
  auto const leaves_folder = [](std::string_view parts) {
    if (parts.starts_with('/')) return true;
    while (!parts.empty()) {
      auto const part = parts.substr(0, parts.find('/'));
      if (part == "..") return true;
      parts.remove_prefix(std::min(parts.size(), part.size() + 1));
    }
    return false;
  };
  if (leaves_folder(basename)) throw DataError(path + ": a shard must be in the folder of its index or below it");
  return path;
}

/// Compares a file's size with the index, if the index has it.
/// @param entry "raw_data" or "zip_data" of a shard
/// @throws DataError if they differ
inline void check_mds_size(DataFile const& file, json::Value const& entry) {
  auto const* const bytes = entry.find("bytes");
  if (bytes == nullptr || bytes->is_null()) return;
  if (auto const expected = bytes->integer(); expected < 0 || static_cast<std::uint64_t>(expected) != file.size())
    file.fail("has " + std::to_string(file.size()) + " bytes, and the index says " + std::to_string(expected) +
              "; one of the two is damaged or of another version, copy both again");
}

/// Returns the SHA-256 that the index has for a file, or null. Tools that restore a lost index leave `hashes` empty, or
/// a list of names.
/// @param entry "raw_data" or "zip_data" of a shard
[[nodiscard]] inline std::string const* mds_sha256(json::Value const& entry) {
  auto const* const hashes = entry.find("hashes");
  auto const* const found = hashes != nullptr && hashes->is<json::Object>() ? hashes->find("sha256") : nullptr;
  return found != nullptr ? &found->string() : nullptr;
}

/// Adds a file's bytes from `at` on to the hash of those before, and compares it with the index.
/// @throws DataError if they differ
inline void check_mds_hash(DataFile const& file, Sha256 hash, std::uint64_t at, std::string const& expected) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(file.size() - at, std::uint64_t{1} << 20));
  for (; at < file.size(); at += buffer.size()) {
    auto const part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file.size() - at));
    file.read(at, part);
    hash.update(part);
  }
  if (hex(hash.digest()) != expected)
    file.fail(
        "has another SHA-256 than the index says; one of the two is damaged or of another version, copy both again");
}

}}}  // namespace lockstep::data::detail
