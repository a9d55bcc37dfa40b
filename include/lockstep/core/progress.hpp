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
[[nodiscard]] std::string minutes_and_seconds(double seconds);

/// Returns whether the last line of `out` can be redrawn: whether it is a terminal. Returns false for the terminal that
/// Open MPI's mpirun gives to each process, because mpirun copies what is written there, and often into a file.
[[nodiscard]] bool can_redraw(std::FILE* out);

/// Shows how far long work is, with the time left. Work that takes less than `quiet_seconds` (default 2) shows nothing.
/// A terminal gets one line that is redrawn. A file gets a plain line per tenth of a phase, at least one a minute and
/// at most one per half of the quiet seconds. `add` may be called by several threads at once, all other functions by
/// one. Does not own `out`.
class Progress {
 public:
  /// @param out null: nothing is shown
  explicit Progress(std::FILE* out = nullptr, double quiet_seconds = 2)
      : out_(out), terminal_(can_redraw(out)), quiet_seconds_(quiet_seconds) {}
  ~Progress() { end(); }
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;

  /// Begins a phase of `all` units of work. The quiet seconds count from the first phase since construction or `end`.
  /// @param all 0: unknown, and the line has the time that passed
  void begin(std::string what, Index all);
  /// Adds finished units, and shows the line if it is due. Calls with 0 units keep the line alive.
  void add(Index units);
  /// A function of how many units are done, of how many, that shows them: what a trainer's evaluation calls.
  [[nodiscard]] auto steps(std::string what) {
    return [this, text = std::move(what)](Index done, Index all) {
      if (done == 1) begin(text, all);
      add(1);
    };
  }
  /// Ends the work: clears the line of a terminal.
  void end();
  /// Whether anything was shown since the first phase.
  [[nodiscard]] bool spoke() const noexcept { return spoke_; }

 private:
  void show(Index done);

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

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/progress.ipp>
#endif
