// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// How much is checked at run time, graded by what a check costs: LOCKSTEP_CONTRACT_LEVEL.
enum class Contract : int {
  off = LOCKSTEP_CONTRACT_OFF,        ///< nothing
  cheap = LOCKSTEP_CONTRACT_CHEAP,    ///< a comparison per call
  normal = LOCKSTEP_CONTRACT_NORMAL,  ///< a pass over small inputs, such as ids (the default)
};

/// The level that this translation unit was compiled with.
inline constexpr Contract contract_level = static_cast<Contract>(LOCKSTEP_CONTRACT_LEVEL);

/// True where checks of this cost are compiled in: `if constexpr (checks(Contract::normal)) ...`.
[[nodiscard]] constexpr bool checks(Contract level) noexcept { return level <= contract_level; }

/// Throws `E` with the message that `say()` builds when `holds` is false; nothing is built otherwise.
template <class E, class Say>
constexpr void expect(bool holds, Say&& say) {
  if constexpr (checks(Contract::cheap)) {
    if (!holds) throw E(say());
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI
