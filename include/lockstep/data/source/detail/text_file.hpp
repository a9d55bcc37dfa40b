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
  /// @throws DataError if it is missing, unreadable, or not a regular file
  TextFile(std::string path, std::uint64_t max_held_bytes)
      : file_(std::move(path)), hash_(file_.size()), is_held_(file_.size() <= max_held_bytes) {
    if (is_held_) held_.reserve(static_cast<std::size_t>(file_.size()));
  }

  [[nodiscard]] std::string const& path() const noexcept { return file_.path(); }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(file_.size()); }
  [[nodiscard]] DataFile const& file() const noexcept { return file_; }
  /// Returns a hash of the whole file after the indexing pass. If the file was indexed in parts, the first call reads
  /// it.
  [[nodiscard]] std::uint64_t hash() const {
    std::lock_guard const lock(hashing_);
    for (std::size_t at = hashed_; at < size(); at = hashed_) {
      auto const end = std::min(size(), at + (std::size_t{1} << 20));
      hash_ = content_hash(read(at, end), hash_);
      hashed_ = end;
    }
    return hash_;
  }
  /// Reads the file into memory if it is held. Replaces `grow` for a file that several threads index.
  void hold_without_window() {
    if (!is_held_) return;
    held_.resize(size());
    file_.read(0, std::as_writable_bytes(std::span(held_)));
  }

  /// Extends the window, which passes through the file.
  /// @throws DataError if the new part is not text, or the window exceeds the maximum length of a line
  void grow(TextWindow& window) {
    if (window.text().size() >= TextWindow::longest)
      fail(window.offset(), "the line is longer than " + std::to_string(TextWindow::longest) +
                                " bytes; give a text file, and close each quote that opens");
    auto const at = window.offset() + window.text().size();
    auto const more = window.grow(file_.descriptor(), path());
    require_text(more, at, path());
    hash_ = content_hash(more, hash_);
    hashed_ += more.size();
    if (is_held_) held_ += more;
    if (window.ended() && window.offset() + window.text().size() != size())
      file_.fail("has changed while it was read; leave it alone while training");
  }

  /// Returns the bytes [begin, end). If the file is not held, they are valid until this thread reads again. A thread
  /// that reads a large file in order prefetches.
  /// @throws DataError if the file has become shorter
  [[nodiscard]] std::string_view read(std::size_t begin, std::size_t end) const {
    if (is_held_) return std::string_view(held_).substr(begin, end - begin);
    thread_local ReadAhead part;
    bool const onward = part.of == number_ && begin >= part.last_end;
    if (!onward || end > part.begin + part.text.size()) {
      bool const in_order = onward && begin - part.last_end < read_ahead / 4 && size() >= 4 * read_ahead;
      auto const bytes = in_order ? std::min(std::max(end - begin, read_ahead), size() - begin) : end - begin;
      part.of = 0;
      part.text.resize(bytes);
      file_.read(begin, std::as_writable_bytes(std::span(part.text)));
      part.of = number_;
      part.begin = begin;
    }
    part.last_end = end;
    return std::string_view(part.text).substr(begin - part.begin, end - begin);
  }

  /// @throws DataError "file:line: what"; only this call counts lines
  [[noreturn]] void fail(std::size_t at, std::string const& what) const {
    throw DataError(path() + ":" + std::to_string(1 + line_ends_before(at)) + ": " + what);
  }

 private:
  /// The part that a thread has read last.
  struct ReadAhead {
    std::uint64_t of = 0;  ///< the file's number; 0: no file
    std::size_t begin = 0, last_end = 0;
    std::string text;
  };
  static constexpr std::size_t read_ahead = std::size_t{1} << 18;

  static std::uint64_t next_number() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  /// Passes through the file at most once over all calls: many rows may be skipped.
  [[nodiscard]] std::ptrdiff_t line_ends_before(std::size_t at) const {
    constexpr std::size_t block = 4096;
    auto const in = [this](std::size_t from, std::size_t end) {
      auto const part = read(from, end);
      return std::count(part.begin(), part.end(), '\n');
    };
    std::lock_guard const lock(counting_);
    for (auto n = line_ends_.size(); n <= at / block; ++n)
      line_ends_.push_back(line_ends_.back() + in((n - 1) * block, n * block));
    return line_ends_[at / block] + in(at / block * block, at);
  }

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
