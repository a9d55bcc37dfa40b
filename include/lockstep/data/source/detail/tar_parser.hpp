// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include <lockstep/data/detail/data_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

struct TarEntry {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;
};

/// Finds the regular files of a tar archive: ustar, with GNU's long names and large sizes and with pax headers. Reads
/// concatenated archives as one. A link has the bytes of its target, a file of the archive that must precede it.
class TarParser {
 public:
  /// Limit for the bytes of a long name or of a pax header. Paths of Linux have at most 4096.
  static constexpr std::uint64_t max_header_bytes = std::uint64_t{1} << 20;

  explicit TarParser(DataFile const& file);
  std::vector<TarEntry> take() && { return std::move(entries_); }

 private:
  static constexpr std::uint64_t block = 512;

  /// Skips the blocks of zeros at an archive's end. Returns whether the file ends there.
  bool skip_zeros();

  void add_entry(std::string const& header, std::uint64_t data, std::uint64_t bytes);
  void add_link(std::string const& header);
  /// @throws DataError if a name or a pax header is longer than any program writes
  void expect_header_bytes(std::uint64_t bytes) const;
  /// Returns the text of a header that holds the next member's long name.
  [[nodiscard]] std::string name_at(std::uint64_t data, std::uint64_t bytes) const;
  std::string name(std::string const& header) const;
  /// Returns a path without "." and "//", which programs write in different ways: "./a" and "a" are one file.
  static std::string normal(std::string const& path);
  static std::string field(std::string const& header, std::size_t at, std::size_t size);
  /// Parses records "LENGTH KEY=VALUE\n".
  void pax(std::string_view text);
  /// Parses octal digits or, if the first bit is set, a big-endian number.
  std::uint64_t number(std::string const& header, std::size_t at, std::size_t size) const;
  void check_sum(std::string const& header) const;
  [[noreturn]] void sparse() const;
  [[noreturn]] void damaged(char const* what) const;

  DataFile const& file_;
  std::uint64_t at_ = 0, next_bytes_ = 0;
  bool has_size_ = false;
  std::string next_name_, next_link_;
  std::vector<TarEntry> entries_;
  std::unordered_map<std::string, std::size_t> by_name_;  // first `named_` members; empty without hard links
  std::size_t named_ = 0;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/tar_parser.ipp>
#endif
