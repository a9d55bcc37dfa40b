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

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// A file that several threads read at any place: opened once, read with pread, without locks.
class DataFile {
 public:
  /// @throws DataError if it cannot be opened or is not a regular file
  explicit DataFile(std::string path);

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
  /// Reads a part as text. Checks the size before it allocates, so that an absurd length is only an error.
  [[nodiscard]] std::string read_text(std::uint64_t offset, std::uint64_t bytes, char const* what) const;
  /// @throws DataError unless [offset, offset + bytes) is in the file
  void require_range(std::uint64_t offset, std::uint64_t bytes, std::string_view what) const;

  /// Returns a hash that changes with the file's length, beginning or end.
  [[nodiscard]] std::uint64_t fingerprint() const;

  [[noreturn]] void fail(std::string const& why) const { throw DataError(path_ + ": " + why); }

 private:
  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  std::int64_t modified_ns_ = 0;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/detail/data_file.ipp>
#endif
