// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// A position in the data from which to resume: everything before `position` in the epoch's order has been used. Does
/// not depend on ranks, workers or batch sizes, all of which may change on resume.
struct LoaderState {
  static constexpr int version = 1;  ///< of the JSON form

  Index epoch = 0;          ///< from 0
  Index position = 0;       ///< in the epoch's global order
  Index samples = 0;        ///< in an epoch
  std::string fingerprint;  ///< of dataset and order, in hexadecimal digits

  /// Returns one line of JSON, below 256 bytes.
  [[nodiscard]] std::string to_json() const;

  /// Reads a string of `to_json`.
  /// @throws DataError if the string is not a state, or has another version; `where` names its origin
  [[nodiscard]] static LoaderState from_json(std::string_view text, std::string const& where = "LoaderState");

  /// Compares all members.
  friend bool operator==(LoaderState const&, LoaderState const&) = default;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/loader/loader_state.ipp>
#endif
