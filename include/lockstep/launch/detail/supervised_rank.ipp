// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/detail/supervised_rank.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_COLD_INLINE std::vector<std::string> SupervisedRank::assignments() const {
  std::string const values[]{std::to_string(rank),   std::to_string(size), std::to_string(supervisor),
                             std::to_string(memory), std::to_string(job),  std::to_string(restarts)};
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::size(variables); ++i) out.push_back(std::string(variables[i]) + "=" + values[i]);
  return out;
}

LOCKSTEP_COLD_INLINE bool SupervisedRank::any(Lookup variable) {
  for (auto const* name : variables)
    if (variable(name)) return true;
  return false;
}

LOCKSTEP_COLD_INLINE Lookup initial_environment() {
  static std::string const all = [] {
    std::string out;
    if (std::FILE* const file = std::fopen("/proc/self/environ", "rbe")) {
      for (int c; (c = std::fgetc(file)) != EOF;) out.push_back(static_cast<char>(c));
      std::fclose(file);
    }
    return out;
  }();
  auto const find = [](void const*, char const* name) -> char const* {
    auto const start = std::string(name) + "=";
    for (std::size_t at = 0; at < all.size(); at += std::strlen(all.c_str() + at) + 1)
      if (all.compare(at, start.size(), start) == 0) return all.c_str() + at + start.size();
    return nullptr;
  };
  return {find, nullptr};
}

LOCKSTEP_COLD_INLINE SupervisedRank SupervisedRank::read(Lookup variable) {
  constexpr auto remedy = "; Lockstep sets them all itself: unset them and start with --nproc N";
  std::string set, missing;
  for (auto const* name : variables) (variable(name) ? set : missing) += std::string(" ") + name;
  if (!missing.empty()) throw ConfigError("launch: the environment has" + set + " but not" + missing + remedy);
  auto const integer = [&](std::size_t i, std::uint64_t least, std::uint64_t most) {
    return parse_variable(variables[i], variable(variables[i]), least, most, remedy);
  };
  SupervisedRank place;
  place.size = static_cast<int>(integer(1, 1, max_local_ranks));
  place.rank = static_cast<int>(integer(0, 0, static_cast<std::uint64_t>(place.size) - 1));
  place.supervisor = static_cast<int>(integer(2, 1, INT32_MAX));
  place.memory = static_cast<int>(integer(3, 0, INT32_MAX));
  place.job = integer(4, 0, UINT64_MAX);
  place.restarts = static_cast<int>(integer(5, 0, INT32_MAX));
  return place;
}

}}}  // namespace lockstep::launch::detail
