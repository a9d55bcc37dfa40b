// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trace/detail/trace_events.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE void TraceEvents::add(Trace const& trace, nn::ParameterLayout const& layout) {
  add_name("process_name", 0, "rank " + std::to_string(rank_));
  add_name("thread_name", training_thread, "training");
  add_phases(trace.training());
  add_buckets(trace.training());
  for (int d = 0; d < trace.devices(); ++d) {
    bool const same_thread = trace.on_host() && d == 0;
    auto const thread = same_thread ? training_thread : first_device + d;
    if (!same_thread) add_name("thread_name", thread, "device " + std::to_string(d));
    add_device(trace.device(d), layout, thread);
  }
  add_loader(trace.loading());
}

LOCKSTEP_INLINE void TraceEvents::add_phases(Timeline const& timeline) {
  for (auto const& span : timeline) {
    if (span.kind != Span::Kind::phase) continue;
    std::string name = span.name;
    if (span.number >= 0) name += " " + std::to_string(span.number);
    add_complete(name, "phase", training_thread, span.begin, span.end);
    end();
  }
}

LOCKSTEP_INLINE void TraceEvents::add_buckets(Timeline const& timeline) {
  std::vector<double> lines;  // end time of each line's last bucket
  std::vector<Span const*> inner;
  for (auto const& span : timeline) {
    if (span.kind != Span::Kind::bucket) continue;
    inner.push_back(&span);
    if (std::string_view(span.name) != "bucket") continue;
    auto line = std::find_if(lines.begin(), lines.end(), [&](double free) { return free <= span.begin; });
    if (line == lines.end()) {
      line = lines.insert(line, 0);
      add_name("thread_name", first_bucket + static_cast<int>(line - lines.begin()), "gradient buckets");
    }
    *line = span.end;
    for (auto const* each : inner) {
      auto const name = each == &span ? "bucket " + std::to_string(span.number) : std::string(each->name);
      add_complete(name, "communication", first_bucket + static_cast<int>(line - lines.begin()), each->begin,
                   each->end);
      event_.key("args").begin_object().member("bytes", each->amount).end_object();
      end();
    }
    inner.clear();
  }
}

LOCKSTEP_INLINE void TraceEvents::add_device(Timeline const& timeline, nn::ParameterLayout const& layout, int thread) {
  auto const names = named_spans(timeline, layout);
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    auto const& span = timeline[i];
    bool const is_operation = !names[i].operation.empty();
    auto const* const category = span.kind == Span::Kind::phase       ? "phase"
                                 : span.kind == Span::Kind::forward   ? "forward"
                                 : span.kind == Span::Kind::recompute ? "forward again"
                                                                      : "backward";
    add_complete(is_operation ? names[i].shown() : span.name, category, thread, span.begin, span.end);
    if (is_operation) {
      event_.key("args").begin_object().member("operation", names[i].operation).member("pass", category);
      if (span.kind == Span::Kind::forward) event_.member("bytes", span.amount);
      event_.end_object();
    }
    end();
  }
}

LOCKSTEP_INLINE void TraceEvents::add_loader(Timeline const& timeline) {
  int workers = 0;
  for (auto const& span : timeline) {
    if (span.kind == Span::Kind::level) {
      begin(span.name, "C", training_thread, span.begin);
      event_.key("args").begin_object().member("batches", span.amount).end_object();
      end();
      continue;
    }
    for (; workers <= span.first; ++workers)
      add_name("thread_name", first_worker + workers, "loader worker " + std::to_string(workers));
    add_complete(span.name, "loader", first_worker + span.first, span.begin, span.end);
    event_.key("args").begin_object().member("batch", span.number).member("rows", span.amount).end_object();
    end();
  }
}

LOCKSTEP_INLINE void TraceEvents::add_complete(std::string_view name, char const* category, int thread, double began,
                                               double ended) {
  begin(name, "X", thread, began);
  event_.member("dur", microseconds(ended) - microseconds(began)).member("cat", category);
}

LOCKSTEP_INLINE void TraceEvents::begin(std::string_view name, char const* what, int thread, double moment) {
  event_.clear();
  event_.begin_object().member("name", name).member("ph", what).member("pid", rank_).member("tid", thread);
  event_.member("ts", microseconds(moment));
}

LOCKSTEP_INLINE void TraceEvents::add_name(char const* of, int thread, std::string const& name) {
  begin(of, "M", thread, -clock_offset_);
  event_.key("args").begin_object().member("name", name).end_object();
  end();
}

LOCKSTEP_INLINE void TraceEvents::end() {
  event_.end_object();
  text_ += event_.text();
  text_ += ",\n";
}

LOCKSTEP_INLINE double TraceEvents::microseconds(double seconds) const noexcept {
  return std::round((seconds + clock_offset_) * 8e6) / 8;
}

}}}  // namespace lockstep::train::detail
