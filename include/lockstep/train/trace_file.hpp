// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <time.h>

#include <cmath>
#include <string>

#include <lockstep/core/clock.hpp>
#include <lockstep/train/atomic_file.hpp>
#include <lockstep/train/detail/trace_events.hpp>
#include <lockstep/train/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// How far Clock is behind the time of day here.
[[nodiscard]] inline double clock_behind_day() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - Clock::seconds();
}
/// How far a Clock is ahead of another, both being that far behind. Ranks of one host share one.
[[nodiscard]] inline double clock_ahead(double behind, double other_behind) noexcept {
  return std::abs(behind - other_behind) < 0.01 ? 0 : other_behind - behind;
}

}  // namespace detail

/// Writes what all ranks have recorded into one file of Chrome's trace format, for ui.perfetto.dev or chrome://tracing:
/// a process for each rank, in it a line for each thread and device. Ranks on other hosts are placed by their time of
/// day. Rank 0 writes; the file is there whole or not at all.
/// @collective with DistributedDataParallel: every rank calls it, with the Trace that its trainer's fit has filled
/// @throws DataError when the file cannot be written
template <class Trainer>
void write_trace(std::string const& path, Trainer& trainer, Trace const& trace) {
  auto const behind = detail::clock_behind_day();
  auto const of_first = std::stod(trainer.broadcast(std::to_string(behind), 0));
  detail::TraceEvents events(trainer.rank(), detail::clock_ahead(of_first, behind));
  events.add(trace, trainer.layout());
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (int rank = 0; rank < trainer.ranks(); ++rank) {
    auto const of_rank = trainer.broadcast(rank == trainer.rank() ? events.text() : std::string(), rank);
    if (trainer.rank() == 0) text += of_rank;
  }
  if (trainer.rank() != 0) return;
  text.resize(text.size() - 2);  // the last comma
  AtomicFile file(path);
  file.write(text);
  file.write("\n]}\n");
  file.commit();
}

}}}  // namespace lockstep::train
