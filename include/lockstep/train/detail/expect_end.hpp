// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// @param caller the function that reads a whole epoch   @param or_else another remedy, after the first
/// @throws ConfigError about a stream of unknown length
[[noreturn, gnu::cold]] void refuse_endless(std::string const& caller, char const* or_else = "");

/// Returns whether a loader's epochs have an end, by `has_end()`; they have one by default.
template <class Loader>
[[nodiscard]] bool ends([[maybe_unused]] Loader const& loader) {
  if constexpr (requires { loader.has_end(); }) return loader.has_end();
  return true;
}

/// Checks that a loader's epochs have an end.   @throws ConfigError, as refuse_endless
template <class Loader>
void expect_end(char const* caller, Loader const& loader, char const* or_else = "") {
  if (!ends(loader)) refuse_endless(caller, or_else);
}

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/expect_end.ipp>
#endif
