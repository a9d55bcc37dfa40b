// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <queue>
#include <system_error>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_remedy.hpp>
#include <lockstep/core/folder.hpp>
#include <lockstep/train/detail/sorted_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE void NumberedLine::append_to(std::string& bytes) const {
  for (Index const number : {sample, static_cast<Index>(text.size())})
    bytes.append(reinterpret_cast<char const*>(&number), sizeof number);
  bytes += text;
}

LOCKSTEP_INLINE std::size_t NumberedLine::bytes_of(std::string_view bytes) noexcept {
  return bytes.size() < header_bytes ? header_bytes
                                     : header_bytes + static_cast<std::size_t>(number(bytes.substr(sizeof(Index))));
}

LOCKSTEP_INLINE NumberedLine NumberedLine::take(std::string_view& bytes) noexcept {
  auto const all = bytes_of(bytes);
  NumberedLine const out{number(bytes), bytes.substr(header_bytes, all - header_bytes)};
  bytes.remove_prefix(all);
  return out;
}

LOCKSTEP_INLINE Index NumberedLine::number(std::string_view bytes) noexcept {
  Index out = 0;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

LOCKSTEP_INLINE void SortedRows::add(std::string_view lines) {
  held_ += lines;
  if (held_.size() >= part_bytes_) spill();
}

LOCKSTEP_INLINE bool SortedRows::Reader::next() {
  if (rest_.empty() && at_ == end_) return false;
  while (rest_.size() < NumberedLine::bytes_of(rest_)) refill();
  line_ = NumberedLine::take(rest_);
  return true;
}

LOCKSTEP_INLINE void SortedRows::Reader::refill() {
  auto const kept = rest_.size();
  auto const more = std::min(end_ - at_, std::max(buffer_bytes_, NumberedLine::bytes_of(rest_) - kept));
  std::string buffer(rest_);
  buffer.resize(kept + more);
  if (more == 0 || read_at(rows_->file_.get(), buffer.data() + kept, more, at_, rows_->table_) < more)
    throw DataError(rows_->table_ + ": its temporary file has lost rows; write the table again");
  at_ += more;
  buffer_ = std::move(buffer);
  rest_ = buffer_;
}

LOCKSTEP_INLINE void SortedRows::visit_all(void const* visitor, void (*visit)(void const*, NumberedLine const&)) {
  bool any = false;
  Index last = 0;
  auto const deliver = [&](NumberedLine const& line) {
    if (std::exchange(any, true) && line.sample == last) return;
    last = line.sample;
    visit(visitor, line);
  };
  if (runs_.empty()) {
    for (auto const& line : sorted()) deliver(line);
    return;
  }
  spill();
  auto const each = std::clamp(part_bytes_ / runs_.size(), std::size_t{1} << 12, std::size_t{1} << 18);
  std::vector<Reader> readers;
  for (auto const& run : runs_) readers.emplace_back(*this, run, each);
  using Next = std::pair<Index, std::size_t>;  // sample and run: of duplicates, the earlier run's line is first
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  auto const advance = [&](std::size_t run) {
    if (readers[run].next()) queue.emplace(readers[run].line().sample, run);
  };
  for (std::size_t run = 0; run < readers.size(); ++run) advance(run);
  while (!queue.empty()) {
    auto const run = queue.top().second;
    queue.pop();
    deliver(readers[run].line());
    advance(run);
  }
}

LOCKSTEP_INLINE std::vector<NumberedLine> SortedRows::sorted() const {
  std::vector<NumberedLine> lines;
  for (std::string_view rest = held_; !rest.empty();) lines.push_back(NumberedLine::take(rest));
  std::stable_sort(lines.begin(), lines.end(), [](auto const& a, auto const& b) { return a.sample < b.sample; });
  return lines;
}

LOCKSTEP_INLINE void SortedRows::spill() {
  if (held_.empty()) return;
  auto const lines = sorted();
  std::string bytes;
  bytes.reserve(held_.size());
  for (auto const& line : lines) line.append_to(bytes);
  auto const begin = runs_.empty() ? 0 : runs_.back().end, end = begin + bytes.size();
  if (!runs_.empty() && lines.front().sample >= runs_.back().last) {
    runs_.back().end = end;
    runs_.back().last = lines.back().sample;
  } else {
    runs_.push_back({begin, end, lines.back().sample});
  }
  write(bytes, begin);
  held_.clear();
  if (held_.capacity() > 2 * part_bytes_) held_.shrink_to_fit();  // after one large addition
}

LOCKSTEP_INLINE void SortedRows::write(std::string_view bytes, std::size_t at) {
  if (file_.get() < 0) {
    std::error_code error;
    auto const there = std::filesystem::status(table_, error);
    bool const is_stream = std::filesystem::exists(there) && !std::filesystem::is_regular_file(there);
    auto const real = is_stream ? std::filesystem::path(temporary_folder()) / "lockstep-rows"
                                : std::filesystem::weakly_canonical(table_, error);
    file_ = unnamed_file(error ? table_ : real.string());
    if (file_.get() < 0) fail("create");
  }
  if (!write_at(file_.get(), bytes, at)) fail("write");
}

LOCKSTEP_INLINE void SortedRows::fail(char const* what) const {
  auto const reason = errno;
  throw DataError(table_ + ": cannot " + what + " a temporary file next to it: " + std::strerror(reason) +
                  file_remedy(reason));
}

LOCKSTEP_COLD_INLINE SortedRows::SortedRows(std::string table, std::size_t part_bytes)
    : table_(std::move(table)), part_bytes_(part_bytes) {}

}}}  // namespace lockstep::train::detail
