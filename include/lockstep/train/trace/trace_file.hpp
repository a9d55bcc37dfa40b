// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <time.h>

#include <charconv>
#include <cmath>
#include <string>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/trace/detail/trace_events.hpp>
#include <lockstep/train/trace/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// Returns the difference between the time of day and Clock, in seconds.
[[nodiscard]] inline double clock_offset_to_realtime() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - Clock::seconds();
}
/// Returns the difference between two clocks from their differences to the time of day. Ranks on one host share a
/// clock.
[[nodiscard]] inline double clock_difference(double offset, double other_offset) noexcept {
  return std::abs(offset - other_offset) < 0.01 ? 0 : other_offset - offset;
}

}  // namespace detail

/// Writes the traces of all ranks into one file in Chrome's trace format, for ui.perfetto.dev or chrome://tracing. Each
/// rank is a process; its threads and devices are lines. Ranks on other hosts are aligned by their time of day. Rank 0
/// writes; the file appears complete or not at all.
/// @collective with DistributedDataParallel: every rank calls it, with the Trace that its trainer's fit has filled
/// @throws DataError if the file cannot be written
template <class Trainer>
void write_trace(std::string const& path, Trainer& trainer, Trace const& trace) {
  auto const offset = detail::clock_offset_to_realtime();
  auto const sent = trainer.broadcast(shortest(offset), 0);
  double of_first = 0;
  std::from_chars(sent.data(), sent.data() + sent.size(), of_first);  // std::stod would obey the locale
  detail::TraceEvents events(trainer.rank(), detail::clock_difference(of_first, offset));
  events.add(trace, trainer.layout());
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (int rank = 0; rank < trainer.ranks(); ++rank) {
    auto const of_rank = trainer.broadcast(rank == trainer.rank() ? events.text() : std::string(), rank);
    if (trainer.rank() == 0) text += of_rank;
  }
  if (trainer.rank() != 0) return;
  text.resize(text.size() - 2);  // last comma
  AtomicFile file(path);
  file.write(text);
  file.write("\n]}\n");
  file.commit();
}

}}}  // namespace lockstep::train
