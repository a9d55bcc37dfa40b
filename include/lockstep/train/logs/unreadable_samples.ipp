// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>

#include <lockstep/train/logs/unreadable_samples.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

// Fields that end with a zero byte: skipped, replaced, then the number and the reason of each sample.
LOCKSTEP_COLD_INLINE std::string UnreadableSamples::packed(Index skipped, Index replaced,
                                                           std::vector<data::SampleFailure> const& failures) {
  if (skipped + replaced == 0) return {};
  std::string out;
  auto const append = [&](std::string_view text) { (out += text) += '\0'; };
  append(std::to_string(skipped));
  append(std::to_string(replaced));
  for (auto const& [sample, reason] : failures) {
    append(std::to_string(sample));
    append(std::string_view(reason).substr(0, reason.find('\0')));
  }
  return out;
}

LOCKSTEP_COLD_INLINE void UnreadableSamples::add(std::string_view packed) {
  auto const text = [&] {
    auto const field = packed.substr(0, packed.find('\0'));
    packed.remove_prefix(std::min(field.size() + 1, packed.size()));
    return field;
  };
  auto const number = [&] {
    auto const field = text();
    Index value = 0;
    std::from_chars(field.data(), field.data() + field.size(), value);
    return value;
  };
  skipped_ += number();
  replaced_ += number();
  std::size_t count = 0;
  for (; !packed.empty(); ++count) {
    data::SampleFailure failure{number(), std::string(text())};
    auto const place = std::lower_bound(samples_.begin(), samples_.end(), failure.sample,
                                        [](auto const& each, Index sample) { return each.sample < sample; });
    if (place == samples_.end() || place->sample != failure.sample) samples_.insert(place, std::move(failure));
  }
  is_complete_ = is_complete_ && count < data::LoaderStats::most_failures;
}

LOCKSTEP_COLD_INLINE std::string UnreadableSamples::note(std::string_view of) const {
  if (samples_.empty()) return {};
  auto const count = samples_.size(), shown = std::min<std::size_t>(count, 8);
  auto const times = skipped_ + replaced_;
  auto const* const bound = is_complete_ ? "" : "at least ";
  auto out = bound + std::to_string(count) + (count == 1 ? " sample" : " samples");
  (out += of) += count == 1 ? " was " : " were ";
  out += skipped_ > 0 ? "skipped" : "replaced";
  if (times > static_cast<Index>(count)) out += ", " + std::to_string(times) + " times in all";
  out += ":";
  for (std::size_t i = 0; i < shown; ++i) out += "\n  " + samples_[i].reason;
  if (count > shown || !is_complete_) out += "\n  and " + (bound + std::to_string(count - shown)) + " more";
  return out;
}

}}}  // namespace lockstep::app::detail
