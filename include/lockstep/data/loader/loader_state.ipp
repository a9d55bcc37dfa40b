// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/loader/loader_state.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_COLD_INLINE std::string LoaderState::to_json() const {
  json::Writer out;
  out.begin_object().member("version", version).member("epoch", epoch).member("position", position);
  out.member("samples", samples).member("fingerprint", fingerprint).end_object();
  return std::move(out).text();
}

LOCKSTEP_COLD_INLINE LoaderState LoaderState::from_json(std::string_view text, std::string const& where) {
  auto const value = json::parse(text, where);
  if (auto const found = value.at("version").integer(); found != version) {
    throw DataError(where + ": the state has version " + std::to_string(found) + "; this library reads version " +
                    std::to_string(version));
  }
  LoaderState out{value.at("epoch").integer(), value.at("position").integer(), value.at("samples").integer(),
                  value.at("fingerprint").string()};
  if (out.epoch < 0 || out.position < 0 || out.position > out.samples) {
    throw DataError(
        where + ": epoch " + std::to_string(out.epoch) + ", position " + std::to_string(out.position) + " of " +
        std::to_string(out.samples) +
        " samples is not a valid position; the state is damaged, so start from the beginning or from another state");
  }
  return out;
}

}}}  // namespace lockstep::data
