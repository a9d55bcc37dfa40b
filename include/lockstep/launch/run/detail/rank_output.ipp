// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/rank_output.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE RankOutput::~RankOutput() {
  if (!thread_.joinable()) return;
  stop();
  thread_.join();
}

LOCKSTEP_INLINE FileDescriptor RankOutput::open(int rank, int stream) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw ConfigError("launch: the system refused to read the output of rank " + std::to_string(rank) +
                      " (pipe2): " + std::strerror(errno));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  sources_.push_back({rank, stream, FileDescriptor(ends[0]), {}});
  return FileDescriptor(ends[1]);
}

LOCKSTEP_INLINE void RankOutput::start() {
  if (wake_.get() < 0)
    throw ConfigError(std::string("launch: the system refused to wait for the ranks' output (eventfd): ") +
                      std::strerror(errno));
  std::packaged_task<void()> task([this] { run(); });
  finished_ = task.get_future();
  thread_ = start_thread("launch", "the thread that forwards the ranks' output", std::move(task));
}

LOCKSTEP_INLINE void RankOutput::finish(std::string report) {
  report_ = std::move(report);
  stop();
}

LOCKSTEP_INLINE bool RankOutput::wait_finished(std::chrono::milliseconds wait) {
  if (finished_.wait_for(wait) != std::future_status::ready) return false;
  finished_.get();
  return true;
}

LOCKSTEP_INLINE void RankOutput::stop() noexcept {
  stopping_ = true;
  ::eventfd_write(wake_.get(), 1);
}

LOCKSTEP_INLINE void RankOutput::run() {
  std::vector<pollfd> polled;
  for (bool last = false; !last;) {
    polled.assign(1, {wake_.get(), POLLIN, 0});
    for (auto const& source : sources_) polled.push_back({source.file.get(), POLLIN, 0});  // poll skips negatives
    ::poll(polled.data(), polled.size(), -1);
    last = stopping_;
    read();
  }
  for (auto& source : sources_) flush(source);
  if (options_.report && !report_.empty()) options_.report(report_);
}

LOCKSTEP_INLINE void RankOutput::read() {
  for (auto& source : sources_) {
    if (source.file.get() < 0) continue;
    char buffer[4096];
    for (std::size_t left = max_pipe_bytes; left > 0; left -= sizeof buffer) {
      auto const got = ::read(source.file.get(), buffer, sizeof buffer);
      if (got > 0) {
        split_lines(source, {buffer, static_cast<std::size_t>(got)});
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got == 0 || errno != EAGAIN) {
        flush(source);
        FileDescriptor const closed = std::exchange(source.file, FileDescriptor());
      }
      break;
    }
  }
}

LOCKSTEP_INLINE void RankOutput::split_lines(Source& source, std::string_view text) {
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    source.partial_line += text.substr(0, end);
    options_.line(source.rank, source.stream, source.partial_line);
    source.partial_line.clear();
    text.remove_prefix(end + 1);
  }
  source.partial_line += text;
  if (source.partial_line.size() > max_line_bytes) flush(source);
}

LOCKSTEP_INLINE void RankOutput::flush(Source& source) {
  if (source.partial_line.empty()) return;
  options_.line(source.rank, source.stream, source.partial_line);
  source.partial_line.clear();
}

}}}  // namespace lockstep::launch::detail
