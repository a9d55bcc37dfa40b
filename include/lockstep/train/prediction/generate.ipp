// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/prediction/generate.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE std::string to_bytes(std::vector<Generated> const& all) {
  std::string out;
  auto const put = [&](auto const& value) { out.append(reinterpret_cast<char const*>(&value), sizeof value); };
  for (auto const& each : all) {
    put(each.sample);
    put(each.hypothesis.log_probability);
    put(each.hypothesis.score);
    put(static_cast<Index>(each.hypothesis.ended));
    put(static_cast<Index>(each.hypothesis.tokens.size()));
    for (auto const token : each.hypothesis.tokens) put(token);
  }
  return out;
}

LOCKSTEP_INLINE void append_from_bytes(std::vector<Generated>& all, std::string_view bytes) {
  auto const take = [&](auto& value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
  };
  while (!bytes.empty()) {
    auto& made = all.emplace_back();
    Index ended = 0, size = 0;
    take(made.sample);
    take(made.hypothesis.log_probability);
    take(made.hypothesis.score);
    take(ended);
    take(size);
    made.hypothesis.ended = ended != 0;
    made.hypothesis.tokens.resize(static_cast<std::size_t>(size));
    for (auto& token : made.hypothesis.tokens) take(token);
  }
}

}}}  // namespace lockstep::train::detail
