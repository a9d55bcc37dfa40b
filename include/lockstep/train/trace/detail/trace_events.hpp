// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/trace/detail/named_spans.hpp>
#include <lockstep/train/trace/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Events of one rank in Chrome's trace format: each is a JSON object on a line that ends in a comma. A rank is a
/// process; its threads and devices are threads of it.
class TraceEvents {
 public:
  /// Takes the seconds by which the trace's clock is ahead of this host's clock.
  explicit TraceEvents(int rank, double clock_offset = 0) : rank_(rank), clock_offset_(clock_offset) {}

  [[nodiscard]] std::string const& text() const noexcept { return text_; }

  void add(Trace const& trace, nn::ParameterLayout const& layout);

 private:
  static constexpr int training_thread = 0, first_device = 1, first_bucket = 1000, first_worker = 2000;

  void add_phases(Timeline const& timeline);
  /// Adds buckets. Overlapping buckets get separate lines.
  void add_buckets(Timeline const& timeline);
  void add_device(Timeline const& timeline, nn::ParameterLayout const& layout, int thread);
  void add_loader(Timeline const& timeline);

  void add_complete(std::string_view name, char const* category, int thread, double began, double ended);
  void begin(std::string_view name, char const* what, int thread, double moment);
  void add_name(char const* of, int thread, std::string const& name);
  void end();
  /// Rounds to 1/8 µs, which every reader represents exactly: nested spans stay nested.
  [[nodiscard]] double microseconds(double seconds) const noexcept;

  int rank_;
  double clock_offset_;
  json::Writer event_;
  std::string text_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trace/detail/trace_events.ipp>
#endif
