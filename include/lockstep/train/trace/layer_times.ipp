// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trace/layer_times.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_INLINE std::vector<LayerTime> layer_times(Trace const& trace, nn::ParameterLayout const& layout) {
  std::vector<LayerTime> times;
  if (trace.empty()) return times;
  auto const& spans = trace.device(0);
  auto const names = detail::named_spans(spans, layout);
  auto const per_step = 1 / static_cast<double>(trace.steps());
  std::map<std::pair<std::string, std::string>, std::size_t> indices;
  std::vector<Span const*> inner;  // spans that no later span contains so far, the latest last
  double all = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    auto const& span = spans[i];
    auto seconds = span.end - span.begin;
    for (; !inner.empty() && inner.back()->begin >= span.begin; inner.pop_back())
      seconds -= inner.back()->end - inner.back()->begin;
    inner.push_back(&span);
    if (names[i].operation.empty()) continue;
    auto const [entry, is_new] = indices.try_emplace({names[i].layer, names[i].operation}, times.size());
    if (is_new) {
      times.push_back({.layer = names[i].layer, .operation = names[i].operation});
      for (int p = span.first; p >= 0 && p <= span.last; ++p)
        times.back().parameter_bytes +=
            static_cast<std::size_t>(layout.entries()[static_cast<std::size_t>(p)].size) * sizeof(float);
    }
    auto& time = times[entry->second];
    auto const ms = 1e3 * seconds * per_step;
    (span.kind == Span::Kind::forward ? time.forward_ms : time.backward_ms) += ms;
    all += ms;
    if (span.kind != Span::Kind::forward) continue;
    time.calls += per_step;
    time.activation_bytes += static_cast<double>(span.amount) * per_step;
  }
  if (all > 0)
    for (auto& time : times) time.share = (time.forward_ms + time.backward_ms) / all;
  return times;
}

LOCKSTEP_INLINE std::string layer_table(std::vector<LayerTime> const& times, std::size_t most) {
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return times[a].share > times[b].share; });
  order.resize(std::min(order.size(), most));
  std::size_t widest_layer = 5, widest_operation = 9;
  for (auto const i : order) {
    widest_layer = std::max(widest_layer, times[i].layer.size());
    widest_operation = std::max(widest_operation, times[i].operation.size());
  }
  auto const padded = [](std::string_view text, std::size_t width) {
    return std::string(text) + std::string(width - std::min(width, text.size()), ' ') + "  ";
  };
  auto out = padded("layer", widest_layer) + padded("operation", widest_operation) +
             " calls  forward ms  backward ms  share  activations MB  parameters MB\n";
  for (auto const i : order) {
    auto const& time = times[i];
    char numbers[160];
    std::snprintf(numbers, sizeof numbers, "%6.4g  %10.3f  %11.3f  %3.0f %%  %14.3f  %13.3f\n", time.calls,
                  time.forward_ms, time.backward_ms, 100 * time.share, time.activation_bytes * 1e-6,
                  static_cast<double>(time.parameter_bytes) * 1e-6);
    out += padded(time.layer, widest_layer) + padded(time.operation, widest_operation) + numbers;
  }
  return out;
}

LOCKSTEP_INLINE void write_layer_times(std::string const& path, std::vector<LayerTime> const& times) {
  std::string text = "layer,operation,calls,forward_ms,backward_ms,share,activation_bytes,parameter_bytes\n";
  auto const add = [&](double number, std::chars_format format, int digits) {  // independent of the locale
    char all[400];
    text += ',';
    text.append(all, std::to_chars(all, all + sizeof all, number, format, digits).ptr);
  };
  for (auto const& time : times) {
    text += detail::csv_quoted(time.layer) + "," + detail::csv_quoted(time.operation);
    add(time.calls, std::chars_format::general, 6);
    for (double const number : {time.forward_ms, time.backward_ms, time.share})
      add(number, std::chars_format::fixed, 6);
    add(time.activation_bytes, std::chars_format::fixed, 0);
    text += "," + std::to_string(time.parameter_bytes) + "\n";
  }
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}}}  // namespace lockstep::train
