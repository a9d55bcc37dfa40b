// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Looks up a variable, by default in this process's environment. Returns null if it is not set.
struct Lookup {
  char const* (*find)(void const*, char const*) = [](void const*, char const* name) -> char const* {
    return std::getenv(name);
  };
  void const* context = nullptr;
  char const* operator()(char const* name) const { return find(context, name); }
};

namespace detail {

/// Remedy for a variable of another launcher.
inline constexpr char const* launcher_remedy = "; correct it, or set LOCKSTEP_LAUNCHER=single for a program on its own";

/// @throws ConfigError if the string is not a number within the bounds
std::uint64_t parse_variable(char const* variable, std::string_view text, std::uint64_t least, std::uint64_t most,
                             char const* remedy);

/// Returns "RANK=0", or "RANK is not set".
std::string describe_variable(Lookup variable, char const* name);

}  // namespace detail
}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/detail/variables.ipp>
#endif
