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
  static constexpr int version = 1;

  Index epoch = 0;
  Index position = 0;       ///< in the epoch's global order
  Index samples = 0;        ///< in an epoch
  std::string fingerprint;  ///< of dataset and order, in hexadecimal digits

  /// Returns one line of JSON, below 256 bytes.
  [[nodiscard]] std::string to_json() const {
    json::Writer out;
    out.begin_object().member("version", version).member("epoch", epoch).member("position", position);
    out.member("samples", samples).member("fingerprint", fingerprint).end_object();
    return std::move(out).text();
  }

  /// @throws DataError if the string is not a state, or has another version
  [[nodiscard]] static LoaderState from_json(std::string_view text) {
    auto const value = json::parse(text, "the loader's state");
    if (auto const found = value.at("version").integer(); found != version) {
      throw DataError("LoaderState: the state has version " + std::to_string(found) + "; this library reads version " +
                      std::to_string(version));
    }
    LoaderState out{value.at("epoch").integer(), value.at("position").integer(), value.at("samples").integer(),
                    value.at("fingerprint").string()};
    if (out.epoch < 0 || out.position < 0 || out.position > out.samples) {
      throw DataError(
          "LoaderState: epoch " + std::to_string(out.epoch) + ", position " + std::to_string(out.position) + " of " +
          std::to_string(out.samples) +
          " samples is not a valid position; the state is damaged, so start from the beginning or from another state");
    }
    return out;
  }

  friend bool operator==(LoaderState const&, LoaderState const&) = default;
};

}}}  // namespace lockstep::data
