// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cerrno>

#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/folder.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/core/regular_file.hpp>
#include <lockstep/data/source/detail/text_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE DataFile converted_file(std::string const& path, std::string const& encoding) {
  auto const from = open_regular_file(path);
  auto const folder = temporary_folder();
  auto to = unnamed_file(folder + "/lockstep-text");
  if (to.get() < 0)
    throw DataError(path + ": its text as UTF-8 cannot be written to " + folder + ": " + system_message(errno) +
                    "; name a folder that can be written to in TMPDIR");
  TextWindow window{TextDecoder(encoding)};
  std::size_t written = 0;
  auto const write = [&](std::string_view text) {
    if (!write_at(to.get(), text, written))
      throw DataError(path + ": its text as UTF-8 cannot be written to " + folder + ": " + system_message(errno) +
                      "; name a folder with more space in TMPDIR, or convert the file to UTF-8");
    written += text.size();
  };
  for (std::ptrdiff_t lines = 0; !window.ended();) {
    auto const at = window.offset();
    require_text(window.grow(from.file.get(), path), at, path);
    auto const text = window.text();
    lines += std::count(text.begin(), text.end(), '\n');
    if (auto const& problem = window.problem())
      throw DataError(path + ":" + std::to_string(1 + lines) + ": " + problem->what);
    if (at == 0 && window.offset() > 0) write("\xef\xbb\xbf");  // the reader of the copy skips a byte order mark, too
    write(text);
    window.drop(text.size());
  }
  return DataFile(path, std::move(to));
}

LOCKSTEP_INLINE DataFile TextFile::open(std::string path, std::string const& encoding) {
  return decoding_of(encoding) == Decoding::convert ? converted_file(path, encoding) : DataFile(std::move(path));
}

LOCKSTEP_INLINE TextFile::TextFile(std::string path, std::uint64_t max_held_bytes, std::string const& encoding)
    : decoding_(decoding_of(encoding)),
      window_encoding_(checks() ? "utf-8" : "bytes"),
      file_(open(std::move(path), encoding)),
      hash_(file_.size()),
      is_held_(file_.size() <= max_held_bytes) {
  if (is_held_) with_memory_for(file_.path(), file_.size(), [&] { held_.reserve(file_.size()); });
}

LOCKSTEP_INLINE TextFile::TextFile(std::string path, std::string const& encoding)
    : decoding_(decoding_of(encoding)),
      window_encoding_(encoding),
      file_(std::move(path)),
      hash_(file_.size()),
      is_held_(true) {}

LOCKSTEP_INLINE std::uint64_t TextFile::hash() const {
  std::lock_guard const lock(hashing_);
  for (std::size_t at = hashed_; at < size(); at = hashed_) {
    auto const end = std::min(size(), at + (std::size_t{1} << 20));
    hash_ = content_hash(read(at, end), hash_);
    hashed_ = end;
  }
  return hash_;
}

LOCKSTEP_INLINE void TextFile::hold_without_window() {
  if (!is_held_) return;
  with_memory_for(path(), size(), [&] { held_.resize(size()); });
  file_.read(0, std::as_writable_bytes(std::span(held_)));
}

LOCKSTEP_INLINE void TextFile::grow(TextWindow& window) {
  if (window.text().size() >= TextWindow::longest)
    fail(window.offset(), "the line is longer than " + std::to_string(TextWindow::longest) +
                              " bytes; give a text file, and close each quote that opens");
  auto const at = window.offset() + window.text().size();
  auto const more = window.grow(file_.descriptor(), path());
  require_text(more, at, path());
  hash_ = content_hash(more, hash_);
  hashed_ += more.size();
  if (is_held_) held_ += more;
  if (auto const& problem = window.problem()) fail(problem->at, problem->what);
  bool const is_converted = decoding_of(window_encoding_) == Decoding::convert;
  if (window.ended() && !is_converted && window.offset() + window.text().size() != size())
    file_.fail("has changed while it was read; leave it alone while training");
}

LOCKSTEP_INLINE std::string_view TextFile::read(std::size_t begin, std::size_t end) const {
  if (is_held_) return std::string_view(held_).substr(begin, end - begin);
  thread_local ReadAhead part;
  bool const onward = part.of == number_ && begin >= part.last_end;
  if (!onward || end > part.begin + part.text.size()) {
    bool const in_order = onward && begin - part.last_end < read_ahead / 4 && size() >= 4 * read_ahead;
    auto const bytes = in_order ? std::min(std::max(end - begin, read_ahead), size() - begin) : end - begin;
    part.of = 0;
    with_memory_for(path(), bytes, [&] { part.text.resize(bytes); });
    file_.read(begin, std::as_writable_bytes(std::span(part.text)));
    part.of = number_;
    part.begin = begin;
  }
  part.last_end = end;
  return std::string_view(part.text).substr(begin - part.begin, end - begin);
}

LOCKSTEP_INLINE void TextFile::fail(std::size_t at, std::string const& what) const {
  throw DataError(path() + ":" + std::to_string(1 + line_ends_before(at)) + ": " + what);
}

LOCKSTEP_INLINE std::uint64_t TextFile::next_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

LOCKSTEP_INLINE std::ptrdiff_t TextFile::line_ends_before(std::size_t at) const {
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

}}}  // namespace lockstep::data::detail
