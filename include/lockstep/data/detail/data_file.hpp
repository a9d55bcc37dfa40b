// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/core/regular_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// A file that several threads read at any place: opened once, read with pread, without locks.
class DataFile {
 public:
  /// @throws DataError if it cannot be opened or is not a regular file
  explicit DataFile(std::string path);
  /// Takes an open file that has the content of `path`, converted.
  DataFile(std::string path, FileDescriptor file);

  [[nodiscard]] std::string const& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }               // when it was opened
  [[nodiscard]] std::int64_t modified_ns() const noexcept { return modified_ns_; }  // since 1970, when it was opened
  [[nodiscard]] std::uint64_t size_now() const noexcept;
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

  /// @throws DataError if the file ends earlier
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  template <class Value>
  [[nodiscard]] Value read_number(std::uint64_t offset) const {
    Value out{};
    read(offset, std::as_writable_bytes(std::span(&out, 1)));
    return out;
  }
  /// Reads a part as text. Checks the size before it allocates, so that an absurd length is only an error. Use
  /// `read_claimed_text` for a length that the file itself claims.
  [[nodiscard]] std::string read_text(std::uint64_t offset, std::uint64_t bytes, char const* what) const;
  /// Reads text of a length that the file claims: checks the limit, then reads in pieces, so that memory is taken only
  /// for text that exists.
  /// @param most limit of the format, as docs/reference/formats.md documents it
  /// @throws DataError if the text is longer, reaches beyond the file or holds a zero byte
  [[nodiscard]] std::string read_claimed_text(std::uint64_t offset, std::uint64_t bytes, std::uint64_t most,
                                              char const* what) const;
  /// @throws DataError unless [offset, offset + bytes) is in the file
  void require_range(std::uint64_t offset, std::uint64_t bytes, std::string_view what) const;

  /// Returns a hash that changes with the file's length, beginning or end.
  [[nodiscard]] std::uint64_t fingerprint() const;
  /// Returns a hash that changes with the file's length and with any of 64 parts, of 4 KiB each, that are spread evenly
  /// over the file.
  [[nodiscard]] std::uint64_t spread_fingerprint() const;
  /// Whether the file belongs to the user of this process or to root.
  [[nodiscard]] bool is_own() const noexcept { return is_own_; }

  [[noreturn]] void fail(std::string const& why) const { throw DataError(path_ + ": " + why); }

 private:
  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  std::int64_t modified_ns_ = 0;
  bool is_own_ = false;
};

/// Limit for the bytes of an index in JSON, such as index.json of MDS.
inline constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 30;

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/detail/data_file.ipp>
#endif
