// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lockstep/data/detail/data_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Reads a part of a file from its beginning to its end with a small buffer, whatever length the file claims.
class ForwardReader {
 public:
  /// @throws DataError unless [begin, begin + bytes) is in the file
  ForwardReader(DataFile const& file, std::uint64_t begin, std::uint64_t bytes, char const* what)
      : file_(file), next_(begin), end_(begin + bytes) {
    file.require_range(begin, bytes, what);
  }

  /// Returns the next bytes, at most `most` and fewer at the end of the part, without moving past them. They are valid
  /// until the next call.
  std::string_view peek(std::size_t most) {
    if (buffer_.size() - at_ < most && next_ < end_) {
      buffer_.erase(0, at_);
      at_ = 0;
      auto const had = buffer_.size();
      auto const wanted = std::max(most - had, block);
      auto const more = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, end_ - next_));
      buffer_.resize(had + more);
      file_.read(next_, std::as_writable_bytes(std::span(buffer_).subspan(had)));
      next_ += more;
    }
    return std::string_view(buffer_).substr(at_, most);
  }
  /// Moves past bytes that `peek` has returned.
  void drop(std::size_t bytes) noexcept { at_ += bytes; }
  [[nodiscard]] bool ended() const noexcept { return next_ == end_ && at_ == buffer_.size(); }

 private:
  static constexpr std::size_t block = std::size_t{1} << 16;

  DataFile const& file_;
  std::uint64_t next_, end_;  // of the part: what is not in the buffer
  std::string buffer_;
  std::size_t at_ = 0;
};

}}}  // namespace lockstep::data::detail
