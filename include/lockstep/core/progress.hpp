// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Seconds as minutes:seconds, with hours before them if there are any: "0:07", "1:02:03".
[[nodiscard]] inline std::string minutes_and_seconds(double seconds) {
  auto const all = static_cast<long long>(seconds);
  char text[64];
  if (all >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", all / 60, all % 60);
  return text;
}

/// Shows how far long work is, with the time left. Work that takes less than `quiet_seconds` (default 2) shows nothing.
/// A terminal gets one line that is redrawn. A file gets a plain line per tenth of a phase, at least one a minute and
/// at most one per half of the quiet seconds. `add` may be called by several threads at once, all other functions by
/// one. Does not own `out`.
class Progress {
 public:
  /// @param out null: nothing is shown
  explicit Progress(std::FILE* out = nullptr, double quiet_seconds = 2)
      : out_(out), terminal_(out && ::isatty(::fileno(out)) == 1), quiet_seconds_(quiet_seconds) {}
  ~Progress() { end(); }
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;

  /// Begins a phase of `all` units of work. The quiet seconds count from the first phase since construction or `end`.
  /// @param all 0: unknown, and the line has the time that passed
  void begin(std::string what, Index all) {
    auto const now = Clock::seconds();
    if (began_ == 0) began_ = now;
    what_ = std::move(what);
    all_ = all;
    done_.store(0, std::memory_order_relaxed);
    tenth_ = 0;
    phase_began_ = now;
    spoke_in_phase_ = false;
  }
  /// Adds finished units, and shows the line if it is due. Calls with 0 units keep the line alive.
  void add(Index units) {
    auto const done = done_.fetch_add(units, std::memory_order_relaxed) + units;
    if (!out_) return;
    if (std::unique_lock const lock(showing_, std::try_to_lock); lock.owns_lock()) show(done);
  }
  /// A function of how many units are done, of how many, that shows them: what a trainer's evaluation calls.
  [[nodiscard]] auto steps(std::string what) {
    return [this, text = std::move(what)](Index done, Index all) {
      if (done == 1) begin(text, all);
      add(1);
    };
  }
  /// Ends the work: clears the line of a terminal.
  void end() {
    if (spoke_ && terminal_) {
      std::fputs("\r\x1b[K", out_);
      std::fflush(out_);
    }
    began_ = 0;
    spoke_ = false;
  }
  /// Whether anything was shown since the first phase.
  [[nodiscard]] bool spoke() const noexcept { return spoke_; }

 private:
  void show(Index done) {
    auto const now = Clock::seconds();
    if (now - began_ < quiet_seconds_) return;
    auto const tenth = all_ > 0 ? done * 10 / all_ : 0;
    auto const passed = now - shown_;
    bool const due = terminal_ ? passed >= 0.1
                               : passed >= quiet_seconds_ / 2 && (!spoke_in_phase_ || tenth > tenth_ || passed >= 60);
    if (!due) return;
    shown_ = now;
    tenth_ = tenth;
    spoke_ = spoke_in_phase_ = true;
    std::string line = what_;
    if (all_ > 0) {
      auto const share = std::min(1.0, static_cast<double>(done) / static_cast<double>(all_));
      line += ": " + std::to_string(static_cast<int>(100 * share)) + " %";
      if (done > 0) line += ", " + minutes_and_seconds((now - phase_began_) * (1 - share) / share) + " left";
    } else {
      line += ": " + minutes_and_seconds(now - phase_began_) + " so far";
    }
    terminal_ ? std::fprintf(out_, "\r\x1b[K%s", line.c_str()) : std::fprintf(out_, "%s\n", line.c_str());
    std::fflush(out_);
  }

  std::FILE* out_;
  bool terminal_;
  double quiet_seconds_;
  std::string what_;
  Index all_ = 0;
  std::atomic<Index> done_{0};
  std::mutex showing_;
  Index tenth_ = 0;
  double began_ = 0, phase_began_ = 0, shown_ = 0;
  bool spoke_ = false, spoke_in_phase_ = false;
};

}}  // namespace lockstep
