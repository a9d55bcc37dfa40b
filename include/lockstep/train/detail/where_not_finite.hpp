// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// Which ranks, or devices of the only one, have computed a loss that is not finite, as in " on rank 1"; nothing where
/// all have: then it is not what one of them was given.
/// @collective with DistributedDataParallel
template <class Session>
[[nodiscard]] std::string where_not_finite(Session& session, int rank, int ranks, int devices) {
  auto const among = static_cast<std::size_t>(ranks > 1 ? ranks : devices);
  std::vector<double> bad(among);
  session.each([&](int shard, auto& replica) {
    auto const place = static_cast<std::size_t>(ranks > 1 ? rank : shard / replica.shards());
    if (!std::isfinite(replica.read_loss().sum)) bad[place] = 1;
  });
  session.all_reduce(bad);
  std::string places;
  std::size_t count = 0;
  for (std::size_t place = 0; place < among; ++place)
    if (bad[place] != 0) places += (count++ == 0 ? "" : ", ") + std::to_string(place);
  if (count == 0 || count == among) return "";
  return (ranks > 1 ? " on rank" : " on device") + std::string(count == 1 ? " " : "s ") + places;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
