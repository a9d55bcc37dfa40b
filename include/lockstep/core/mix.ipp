// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE std::string hexadecimal(std::uint64_t key) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[key >> shift & 15];
  return out;
}

}}  // namespace lockstep
