// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// What rank 0 chooses by time, for the products that its first device has made so far; nothing where products leave no
/// choice.   @collective with DistributedDataParallel
template <class Session>
[[nodiscard]] std::string choose_products(Session& session, int rank) {
  std::string choices;
  session.each([&](int shard, auto& replica) {
    if constexpr (requires { replica.device().choose_products(); })
      if (rank == 0 && shard == 0) choices = replica.device().choose_products();
  });
  if constexpr (requires { session.broadcast(choices, 0); }) session.broadcast(choices, 0);
  return choices;
}

/// On all devices, from here on.
template <class Session>
void take_products(Session& session, std::string const& choices) {
  if (choices.empty()) return;
  session.each([&](int, auto& replica) {
    if constexpr (requires { replica.device().take_products(choices); }) replica.device().take_products(choices);
  });
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
