// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <system_error>

#include <lockstep/core/shortest.hpp>
#include <lockstep/train/detail/saved_state_reader.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE SavedStateReader::SavedStateReader(Format const& format, std::string_view text,
                                                        std::string const& where)
    : format_(format), where_(where), value_(json::parse(text, where)) {
  if (auto const found = value_.at("version").integer(); found != format.version)
    throw DataError(where + ": " + format.state + " has version " + std::to_string(found) +
                    "; this library reads version " + std::to_string(format.version));
}

LOCKSTEP_COLD_INLINE std::string SavedStateReader::string_or_empty(char const* name) const {
  auto const* const found = value_.find(name);
  return found ? found->string() : std::string();
}

LOCKSTEP_COLD_INLINE Index SavedStateReader::within(char const* name, Index value, Index least, Index most) const {
  if (value < least || value > most) refuse(name, std::to_string(value));
  return value;
}

LOCKSTEP_COLD_INLINE double SavedStateReader::non_negative(char const* name) const {
  auto const number = value_.at(name).number();
  if (!(number >= 0) || !std::isfinite(number)) refuse(name, shortest(number));
  return number;
}

LOCKSTEP_COLD_INLINE std::uint64_t SavedStateReader::seed() const {
  auto const& text = value_.at("seed").string();
  std::uint64_t seed = 0;
  auto const read = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) refuse("seed", text);
  return seed;
}

LOCKSTEP_COLD_INLINE optim::LossScaler::State SavedStateReader::loss_scale(Index steps, ZeroScale zero) const {
  using Scaler = optim::LossScaler;
  auto const number = value_.at("loss_scale").number();
  int exponent = 0;
  bool const is_scale = number >= static_cast<double>(Scaler::least) && number <= static_cast<double>(Scaler::most) &&
                        std::frexp(number, &exponent) == 0.5;
  if (!is_scale && !(number == 0 && zero == ZeroScale::unscaled)) refuse("loss_scale", shortest(number));
  Scaler::State state;
  state.scale = static_cast<float>(number);
  state.good_steps = integer<decltype(state.good_steps)>("good_steps", 0, steps);
  state.skipped = integer<decltype(state.skipped)>("skipped_steps", 0, steps);
  return state;
}

LOCKSTEP_COLD_INLINE void SavedStateReader::refuse(std::string const& name, std::string const& found) const {
  throw DataError(where_ + ": in " + format_.state + " " + name + " is " + found + ", which no " + format_.writer +
                  " writes; the file is damaged, " + format_.remedy);
}

}}}  // namespace lockstep::train::detail
