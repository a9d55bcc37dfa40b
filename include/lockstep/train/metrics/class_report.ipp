// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/train/metrics/class_report.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_INLINE std::string class_report(EvaluationReport const& report, std::vector<std::string> const& names) {
  auto const classes = names.size();
  auto const& metrics = report.metrics;
  auto const first = static_cast<std::size_t>(
      std::find_if(metrics.begin(), metrics.end(), [](auto const& each) { return each.first == "confusion.0.0"; }) -
      metrics.begin());
  auto const last = std::to_string(classes - 1);
  if (classes == 0 || first + classes * classes > metrics.size() ||
      metrics[first + classes * classes - 1].first != "confusion." + last + "." + last)
    throw ConfigError("class_report: the evaluation has no confusion matrix of " + std::to_string(classes) +
                      " classes; evaluate with train::ConfusionMatrix{&Sample::label, classes}");
  auto const count = [&](std::size_t label, std::size_t predicted) {
    return metrics[first + label * classes + predicted].second;
  };
  auto const characters = [](std::string_view utf8) {
    return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  };
  std::size_t width = 10;
  for (auto const& name : names) width = std::max(width, characters(name));
  auto const numbers = [](double samples, double recall, double precision, double f1) {
    char text[128];
    std::snprintf(text, sizeof text, "%10.0f %8.4f  %8.4f %8.4f\n", samples, recall, precision, f1);
    return std::string(text);
  };
  auto const spaces = [&](std::string const& string, std::size_t columns) {
    return std::string(columns - std::min(columns, characters(string)), ' ');
  };
  auto const padded = [&](std::string const& name, std::size_t columns) { return name + spaces(name, columns); };

  auto out = padded("class", width) + "   samples   recall precision       F1\n";
  double samples = 0, recalls = 0, precisions = 0, f1s = 0, counted = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    double labels = 0, predicted = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      labels += count(i, k);
      predicted += count(k, i);
    }
    auto const both = count(i, i);
    auto const recall = labels > 0 ? both / labels : 0, precision = predicted > 0 ? both / predicted : 0;
    auto const f1 = labels + predicted > 0 ? 2 * both / (labels + predicted) : 0;
    out += padded(names[i], width) + numbers(labels, recall, precision, f1);
    samples += labels;
    if (labels + predicted == 0) continue;
    recalls += recall;
    precisions += precision;
    f1s += f1;
    ++counted;
  }
  counted = std::max(counted, 1.0);
  out += padded("macro mean", width) + numbers(samples, recalls / counted, precisions / counted, f1s / counted);
  out += "confusion matrix: rows are labels, columns are predictions\n" + padded("", width);
  auto const column = [&](std::string const& name) { return "  " + spaces(name, 6) + name; };
  for (auto const& name : names) out += column(name);
  for (std::size_t i = 0; i < classes; ++i) {
    out += "\n" + padded(names[i], width);
    for (std::size_t k = 0; k < classes; ++k) {
      auto const number = std::to_string(std::llround(count(i, k)));
      out += spaces(number, characters(column(names[k]))) + number;
    }
  }
  return out + "\n";
}

}}}  // namespace lockstep::train
