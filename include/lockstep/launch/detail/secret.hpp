// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/variables.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Fewest characters of a secret: 128 bits as hexadecimal digits. Scripts use 64.
inline constexpr std::size_t min_secret_bytes = 32, max_secret_bytes = 4096;

/// Returns the secret that the ranks of a job share: the content of the file that LOCKSTEP_SECRET_FILE names, else
/// LOCKSTEP_SECRET, without white space at its end. Empty if neither is set. No message contains the secret.
/// @throws ConfigError if it is too short, or if others may read or have written the file
[[nodiscard]] std::string read_secret(Lookup variable = {});

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/detail/secret.ipp>
#endif
