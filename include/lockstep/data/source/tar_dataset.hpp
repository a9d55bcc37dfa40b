// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/detail/partial_path.hpp>
#include <lockstep/data/source/detail/forward_reader.hpp>
#include <lockstep/data/source/detail/tar_parser.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// One member of a sample in a tar archive.
struct TarMember {
  std::string extension;            ///< the part after the key and its dot: "jpg", "seg.png"
  std::vector<std::uint8_t> bytes;  ///< whole content of the member
};

/// Deprecated: use TarMember.
using TarPart [[deprecated("data::TarMember")]] = TarMember;

/// A sample of a tar archive: its members by extension.
struct TarSample {
  std::string key;                 ///< the common part of the members' paths
  std::vector<TarMember> members;  ///< in the order of the archive

  /// Returns the bytes of a member. @throws DataError if the sample has no member with this extension
  [[nodiscard]] std::vector<std::uint8_t> const& at(std::string_view extension) const;
};

/// Whether the index of an archive is kept for later runs.
enum class TarIndex {
  keep,    ///< in a file next to the archive, PATH.index, if the folder is writable (the default). An existing one is
           ///< used if it belongs to the user or to root, and matches the archive's size, time and checksum
  memory,  ///< only in memory
};

/// Reads the samples of a tar archive in WebDataset's convention. Files whose paths are equal up to the first dot of
/// the name are one sample. Reads the headers once; then any sample takes one call per member. The archive stays open.
/// Skips hidden files, and metadata whose path begins with a name such as `__meta__`; `skipped` counts them. An archive
/// without files has no samples, such as one of many shards. Reads concatenated archives as one. Decode with
/// data::Transform. Copies share archive and index. Thread-safe.
/// @throws DataError if the archive or its index is damaged, has only skipped files, or is shortened while it is read
/// @throws DataError if a file is sparse, or a link to a file that does not precede it
/// @source POSIX.1-2001 (ustar, pax), GNU tar's long names and base-256 sizes
class TarDataset {
 public:
  /// Opens the archive and reads its headers, or a kept index.
  explicit TarDataset(std::string path, TarIndex index = TarIndex::keep);

  /// Returns the number of samples.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(samples_->keys.size()); }
  /// Reads sample i of [0, size()).
  [[nodiscard]] TarSample get(Index i) const;
  /// Returns the archive and the sample's key.
  [[nodiscard]] std::string name(Index i) const;
  /// Returns the number of files that are no samples: hidden files, and metadata such as `__meta__`.
  [[nodiscard]] Index skipped() const noexcept { return samples_->skipped; }
  /// Returns a hash that changes with the archive's size, beginning or end.
  [[nodiscard]] std::uint64_t fingerprint() const { return file_->fingerprint(); }

 private:
  struct Samples {
    Index skipped = 0;
    std::vector<std::string> keys;
    std::vector<std::vector<detail::TarEntry>> members;  // of each sample, by extension
  };

  /// Whether a path begins with a name such as `__meta__`, which WebDataset skips.
  static bool is_metadata(std::string_view path) noexcept;
  void require_unique_extensions(std::string const& key, std::vector<detail::TarEntry> const& members) const;
  /// Returns the first line of an index, which identifies its archive.
  [[nodiscard]] std::string first_line() const;
  /// Returns the members, or an empty vector if there is no index for this archive; the index is then rebuilt.
  [[nodiscard]] std::vector<detail::TarEntry> read_index(std::string const& index_path) const;
  /// Whether there is an index, complete or not, which may be replaced.
  static bool is_index(std::string const& path);
  /// Writes the index atomically: first under another name. Does not write it if a name contains a line break.
  void write_index(std::string const& index_path, std::vector<detail::TarEntry> const& members) const;

  std::shared_ptr<detail::DataFile const> file_;
  std::shared_ptr<Samples const> samples_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/tar_dataset.ipp>
#endif
