// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/prediction/generate.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE std::string to_bytes(Hypothesis const& hypothesis) {
  std::string out;
  auto const put = [&](auto const& value) { out.append(reinterpret_cast<char const*>(&value), sizeof value); };
  put(hypothesis.log_probability);
  put(hypothesis.score);
  put(static_cast<Index>(hypothesis.ended));
  for (auto const token : hypothesis.tokens) put(token);
  return out;
}

LOCKSTEP_INLINE Generated generated_from(NumberedLine const& line) {
  auto bytes = line.text;
  auto const take = [&](auto& value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
  };
  Generated out{.sample = line.sample, .hypothesis = {}};
  auto& hypothesis = out.hypothesis;
  Index ended = 0;
  take(hypothesis.log_probability);
  take(hypothesis.score);
  take(ended);
  hypothesis.ended = ended != 0;
  hypothesis.tokens.resize(bytes.size() / sizeof(std::int32_t));
  for (auto& token : hypothesis.tokens) take(token);
  return out;
}

}}}  // namespace lockstep::train::detail
