// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns 16 hexadecimal digits for the name of a temporary file or folder, which cannot be predicted and which no
/// other thread or process has. In a folder where others may write, a predictable name may be a link that they made.
/// Open the file with O_EXCL and O_NOFOLLOW.
[[nodiscard]] inline std::string random_suffix() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != static_cast<::ssize_t>(sizeof number))
    number = mix(static_cast<std::uint64_t>(Clock::nanoseconds()), static_cast<std::uint64_t>(::getpid()),
                 reinterpret_cast<std::uintptr_t>(&number));  // a system without random numbers: unique all the same
  return hexadecimal(number);
}

}}  // namespace lockstep
