// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/version.hpp>

/// How much is checked at run time, graded by what a check costs. `collective` checks compare ranks and so communicate.
#define LOCKSTEP_CONTRACT_OFF 0
#define LOCKSTEP_CONTRACT_CHEAP 10
#define LOCKSTEP_CONTRACT_NORMAL 20
#define LOCKSTEP_CONTRACT_COLLECTIVE 30
#define LOCKSTEP_CONTRACT_HEAVY 40
#if !defined(LOCKSTEP_CONTRACT_LEVEL)
#define LOCKSTEP_CONTRACT_LEVEL LOCKSTEP_CONTRACT_NORMAL
#endif

namespace lockstep::inline LOCKSTEP_ABI {

enum class Contract : int {
  off = LOCKSTEP_CONTRACT_OFF,                ///< nothing
  cheap = LOCKSTEP_CONTRACT_CHEAP,            ///< a comparison per call
  normal = LOCKSTEP_CONTRACT_NORMAL,          ///< a pass over small inputs, such as ids (the default)
  collective = LOCKSTEP_CONTRACT_COLLECTIVE,  ///< ranks compare notes
  heavy = LOCKSTEP_CONTRACT_HEAVY,            ///< a pass over everything, such as a search for nan
};

/// The level that this translation unit was compiled with.
inline constexpr Contract contract_level = static_cast<Contract>(LOCKSTEP_CONTRACT_LEVEL);

/// True where checks of this cost are compiled in: `if constexpr (checks(Contract::normal)) ...`.
[[nodiscard]] constexpr bool checks(Contract level) noexcept { return level <= contract_level; }

/// Throws `E` with the message that `say()` builds when `holds` is false; nothing is built otherwise.
template <class E, Contract level = Contract::cheap, class Say>
constexpr void expect(bool holds, Say&& say) {
  if constexpr (checks(level)) {
    if (!holds) throw E(say());
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI
