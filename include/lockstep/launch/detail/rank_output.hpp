// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/file.hpp>
#include <lockstep/launch/options.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch::detail {

/// What ranks write, line by line, so that lines of several do not mix.
class RankOutput {
 public:
  explicit RankOutput(Options const& options) : line_(options.line) {}

  /// Whether anybody wants to know.
  [[nodiscard]] bool wanted() const noexcept { return static_cast<bool>(line_); }

  /// Where a rank shall write what belongs to this stream (1 or 2). Close it once the rank has started.
  /// @throws ConfigError when the system refuses
  File open(int rank, int stream) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw ConfigError("launch: the system refused to read what rank " + std::to_string(rank) +
                        " writes (pipe2): " + std::strerror(errno));
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    sources_.push_back({rank, stream, File(ends[0]), {}});
    return File(ends[1]);
  }

  void add_to(std::vector<pollfd>& polled) const {
    for (auto const& source : sources_)
      if (source.file.get() >= 0) polled.push_back({source.file.get(), POLLIN, 0});
  }

  /// Passes on what is there; of a rank that writes on and on, a part, for there is more to look after.
  void read() {
    for (auto& source : sources_) {
      if (source.file.get() < 0) continue;
      char buffer[4096];
      for (std::size_t left = most_in_pipe; left > 0; left -= sizeof buffer) {
        auto const got = ::read(source.file.get(), buffer, sizeof buffer);
        if (got > 0) {
          take(source, {buffer, static_cast<std::size_t>(got)});
          continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got == 0 || errno != EAGAIN) {
          end(source);
          File const closed = std::exchange(source.file, File());
        }
        break;
      }
    }
  }

  /// The ranks have ended; what they left running may still hold their ends, and is not waited for.
  void finish() {
    read();
    for (auto& source : sources_) end(source);
    sources_.clear();
  }

 private:
  static constexpr std::size_t most_in_pipe = std::size_t{1} << 20;  // of one nobody has enlarged
  static constexpr std::size_t longest = std::size_t{1} << 16;       // what has no end of line is passed on in parts

  struct Source {
    int rank, stream;
    File file;
    std::string begun;
  };

  void take(Source& source, std::string_view text) {
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      source.begun += text.substr(0, end);
      line_(source.rank, source.stream, source.begun);
      source.begun.clear();
      text.remove_prefix(end + 1);
    }
    source.begun += text;
    if (source.begun.size() > longest) end(source);
  }
  void end(Source& source) {
    if (source.begun.empty()) return;
    line_(source.rank, source.stream, source.begun);
    source.begun.clear();
  }

  std::function<void(int, int, std::string const&)> const& line_;
  std::vector<Source> sources_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch::detail
