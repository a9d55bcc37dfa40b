// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>

#include <lockstep/core/progress.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE std::string minutes_and_seconds(double seconds) {
  auto const all = static_cast<long long>(seconds);
  char text[64];
  if (all >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", all / 60, all % 60);
  return text;
}

LOCKSTEP_INLINE bool can_redraw(std::FILE* out) {
  return out && ::isatty(::fileno(out)) == 1 && std::getenv("OMPI_COMM_WORLD_RANK") == nullptr;
}

LOCKSTEP_INLINE void Progress::begin(std::string what, Index all) {
  auto const now = Clock::seconds();
  if (began_ == 0) began_ = now;
  what_ = std::move(what);
  all_ = all;
  done_.store(0, std::memory_order_relaxed);
  tenth_ = 0;
  phase_began_ = now;
  spoke_in_phase_ = false;
}

LOCKSTEP_INLINE void Progress::add(Index units) {
  auto const done = done_.fetch_add(units, std::memory_order_relaxed) + units;
  if (!out_) return;
  if (std::unique_lock const lock(showing_, std::try_to_lock); lock.owns_lock()) show(done);
}

LOCKSTEP_INLINE void Progress::end() {
  if (spoke_ && terminal_) {
    std::fputs("\r\x1b[K", out_);
    std::fflush(out_);
  }
  began_ = 0;
  spoke_ = false;
}

LOCKSTEP_INLINE void Progress::show(Index done) {
  auto const now = Clock::seconds();
  if (now - began_ < quiet_seconds_) return;
  auto const tenth = all_ > 0 ? done * 10 / all_ : 0;
  auto const passed = now - shown_;
  bool const due =
      terminal_ ? passed >= 0.1 : passed >= quiet_seconds_ / 2 && (!spoke_in_phase_ || tenth > tenth_ || passed >= 60);
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

}}  // namespace lockstep
