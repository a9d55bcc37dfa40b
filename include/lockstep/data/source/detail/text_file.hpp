// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/detail/content_hash.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/text_window.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Bytes of a text dataset's file that are held in memory by default.
inline constexpr std::uint64_t max_held_text = std::uint64_t{256} << 20;

/// A text file that is indexed in one pass and then read in parts. It is held in memory if it is small enough, and read
/// by parts otherwise. It is never mapped, because a mapped file that another process shortens kills the reader.
class TextFile {
 public:
  /// Opens a file. A text in another encoding is converted first, to a file without a name in the folder for temporary
  /// files, so that offsets, lines and hash are those of its UTF-8.
  /// @throws DataError if it is missing, unreadable, or not a regular file, or a text that is converted is not text
  /// @throws ConfigError for an unknown encoding
  TextFile(std::string path, std::uint64_t max_held_bytes, std::string const& encoding);
  /// Opens a file for one window, which reads the beginning and converts it on the way. Holds the text that was read.
  TextFile(std::string path, std::string const& encoding);

  /// Returns a window that passes through the file.
  [[nodiscard]] TextWindow window() const { return TextWindow(TextDecoder(window_encoding_)); }
  /// Whether the text must be UTF-8.
  [[nodiscard]] bool checks() const noexcept { return decoding_ != Decoding::none; }

  [[nodiscard]] std::string const& path() const noexcept { return file_.path(); }
  [[nodiscard]] std::size_t size() const noexcept { return file_.size(); }
  [[nodiscard]] DataFile const& file() const noexcept { return file_; }
  /// Returns a hash of the whole file after the indexing pass. If the file was indexed in parts, the first call reads
  /// it.
  [[nodiscard]] std::uint64_t hash() const;
  /// Reads the file into memory if it is held. Replaces `grow` for a file that several threads index.
  void hold_without_window();

  /// Extends the window, which passes through the file.
  /// @throws DataError if the new part is not text, or the window exceeds the maximum length of a line
  void grow(TextWindow& window);

  /// Returns the bytes [begin, end). If the file is not held, they are valid until this thread reads again. A thread
  /// that reads a large file in order prefetches.
  /// @throws DataError if the file has become shorter
  [[nodiscard]] std::string_view read(std::size_t begin, std::size_t end) const;

  /// @throws DataError "file:line: what"; only this call counts lines
  [[noreturn]] void fail(std::size_t at, std::string const& what) const;

 private:
  /// The part that a thread has read last.
  struct ReadAhead {
    std::uint64_t of = 0;  ///< the file's number; 0: no file
    std::size_t begin = 0, last_end = 0;
    std::string text;
  };
  static constexpr std::size_t read_ahead = std::size_t{1} << 18;

  static DataFile open(std::string path, std::string const& encoding);
  static std::uint64_t next_number() noexcept;
  /// Passes through the file at most once over all calls: many rows may be skipped.
  [[nodiscard]] std::ptrdiff_t line_ends_before(std::size_t at) const;

  Decoding decoding_;
  std::string window_encoding_;  // of file_
  DataFile file_;
  std::uint64_t const number_ = next_number();  // among all files of the process
  mutable std::mutex hashing_;
  mutable std::uint64_t hash_;
  mutable std::size_t hashed_ = 0;  // bytes
  bool is_held_;
  std::string held_;
  mutable std::mutex counting_;
  mutable std::vector<std::ptrdiff_t> line_ends_{0};  // before each block, as far as requested
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/text_file.ipp>
#endif
