// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Level of run-time checks, graded by their cost: LOCKSTEP_CONTRACT_LEVEL.
enum class Contract : int {
  off = LOCKSTEP_CONTRACT_OFF,        ///< nothing
  cheap = LOCKSTEP_CONTRACT_CHEAP,    ///< a comparison per call
  normal = LOCKSTEP_CONTRACT_NORMAL,  ///< a pass over small inputs, such as ids (the default)
};

/// The level that this translation unit is compiled with.
inline constexpr Contract contract_level = static_cast<Contract>(LOCKSTEP_CONTRACT_LEVEL);

/// Returns whether checks of this cost are compiled in: `if constexpr (checks(Contract::normal)) ...`.
[[nodiscard]] constexpr bool checks(Contract level) noexcept { return level <= contract_level; }

/// Throws `Thrown` with the message that `say()` returns if `holds` is false. Otherwise calls no `say`.
template <class Thrown, class Say>
constexpr void expect(bool holds, Say&& say) {
  if constexpr (checks(Contract::cheap)) {
    if (!holds) throw Thrown(say());
  }
}

}}  // namespace lockstep
