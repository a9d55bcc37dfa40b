// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/optim/loss_scaler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Reads and checks the values of a saved state: those of a run's checkpoint and those of train::save_state.
class SavedStateReader {
 public:
  /// Words of a format's error messages, and its version.
  struct Format {
    char const* state;   ///< "the state of training"
    char const* writer;  ///< "run"
    char const* remedy;  ///< "resume from another checkpoint"
    int version;
  };
  /// Meaning of the loss scale 0.
  enum class ZeroScale {
    refused,   ///< the format has no loss scale if there is no loss scaling
    unscaled,  ///< there is no loss scaling
  };

  /// @throws DataError if the string is not JSON, or has another version; `where` names its origin
  SavedStateReader(Format const& format, std::string_view text, std::string const& where)
      : format_(format), where_(where), value_(json::parse(text, where)) {
    if (auto const found = value_.at("version").integer(); found != format.version)
      throw DataError(where + ": " + format.state + " has version " + std::to_string(found) +
                      "; this library reads version " + std::to_string(format.version));
  }

  [[nodiscard]] json::Value const& value() const noexcept { return value_; }
  [[nodiscard]] bool has(char const* name) const { return value_.find(name) != nullptr; }
  /// Returns a string, or an empty one if there is none.
  [[nodiscard]] std::string string_or_empty(char const* name) const {
    auto const* const found = value_.find(name);
    return found ? found->string() : std::string();
  }

  /// Returns the integer `name`.   @throws DataError unless it is in [least, most] and in T's range
  template <class T = Index>
  [[nodiscard]] T integer(char const* name, Index least, Index most) const {
    auto const largest = static_cast<std::int64_t>(std::numeric_limits<T>::max());
    return static_cast<T>(within(name, value_.at(name).integer(), least, std::min<std::int64_t>(most, largest)));
  }
  /// Returns `value`.   @throws DataError unless it is in [least, most]
  Index within(char const* name, Index value, Index least, Index most) const {
    if (value < least || value > most) refuse(name, std::to_string(value));
    return value;
  }
  /// Returns the number `name`.   @throws DataError unless it is finite and at least 0
  [[nodiscard]] double non_negative(char const* name) const {
    auto const number = value_.at(name).number();
    if (!(number >= 0) || !std::isfinite(number)) refuse(name, std::to_string(number));
    return number;
  }
  /// Returns the seed, which is saved as a string.   @throws DataError unless it is an unsigned integer
  [[nodiscard]] std::uint64_t seed() const {
    auto const& text = value_.at("seed").string();
    std::uint64_t seed = 0;
    auto const read = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) refuse("seed", text);
    return seed;
  }
  /// Returns the loss scale with its counts of steps.
  /// @throws DataError unless it is a power of two in the scaler's range, and the counts are at most `steps`
  [[nodiscard]] optim::LossScaler::State loss_scale(Index steps, ZeroScale zero) const {
    using Scaler = optim::LossScaler;
    auto const number = value_.at("loss_scale").number();
    int exponent = 0;
    bool const is_scale = number >= Scaler::least && number <= Scaler::most && std::frexp(number, &exponent) == 0.5;
    if (!is_scale && !(number == 0 && zero == ZeroScale::unscaled)) refuse("loss_scale", std::to_string(number));
    Scaler::State state;
    state.scale = static_cast<float>(number);
    state.good_steps = integer<decltype(state.good_steps)>("good_steps", 0, steps);
    state.skipped = integer<decltype(state.skipped)>("skipped_steps", 0, steps);
    return state;
  }

 private:
  [[noreturn]] void refuse(std::string const& name, std::string const& found) const {
    throw DataError(where_ + ": in " + format_.state + " " + name + " is " + found + ", which no " + format_.writer +
                    " writes; the file is damaged, " + format_.remedy);
  }

  Format format_;
  std::string where_;
  json::Value value_;
};

}}}  // namespace lockstep::train::detail
