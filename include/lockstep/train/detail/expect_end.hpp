// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Checks that a loader's epochs have an end, by `has_end()`; they have one by default.
/// @param caller the function that reads a whole epoch   @param or_else another remedy, after the first
/// @throws ConfigError for a stream of unknown length
template <class Loader>
void expect_end(std::string const& caller, [[maybe_unused]] Loader const& loader, char const* or_else = "") {
  if constexpr (requires { loader.has_end() ? 1 : 0; })
    if (!loader.has_end())
      throw ConfigError(caller +
                        ": the loader reads a stream of unknown length, whose epoch would not end; give "
                        "data::Streamed the number of samples in an epoch" +
                        or_else);
}

}}}  // namespace lockstep::train::detail
