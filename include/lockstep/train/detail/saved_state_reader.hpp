// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

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
  SavedStateReader(Format const& format, std::string_view text, std::string const& where);

  [[nodiscard]] json::Value const& value() const noexcept { return value_; }
  [[nodiscard]] bool has(char const* name) const { return value_.find(name) != nullptr; }
  /// Returns a string, or an empty one if there is none.
  [[nodiscard]] std::string string_or_empty(char const* name) const;

  /// Returns the integer `name`.   @throws DataError unless it is in [least, most] and in Value's range
  template <class Value = Index>
  [[nodiscard]] Value integer(char const* name, Index least, Index most) const {
    auto const largest = static_cast<std::int64_t>(std::numeric_limits<Value>::max());
    return static_cast<Value>(within(name, value_.at(name).integer(), least, std::min<std::int64_t>(most, largest)));
  }
  /// Returns `value`.   @throws DataError unless it is in [least, most]
  Index within(char const* name, Index value, Index least, Index most) const;
  /// Returns the number `name`.   @throws DataError unless it is finite and at least 0
  [[nodiscard]] double non_negative(char const* name) const;
  /// Returns the seed, which is saved as a string.   @throws DataError unless it is an unsigned integer
  [[nodiscard]] std::uint64_t seed() const;
  /// Returns the loss scale with its counts of steps.
  /// @throws DataError unless it is a power of two in the scaler's range, and the counts are at most `steps`
  [[nodiscard]] optim::LossScaler::State loss_scale(Index steps, ZeroScale zero) const;

 private:
  [[noreturn]] void refuse(std::string const& name, std::string const& found) const;

  Format format_;
  std::string where_;
  json::Value value_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/saved_state_reader.ipp>
#endif
