// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include <lockstep/core/free_memory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE std::string memory_size(double bytes) {
  constexpr double kibibyte = 1 << 10, mebibyte = 1 << 20, gibibyte = 1 << 30;
  char text[64];
  if (bytes < mebibyte)
    std::snprintf(text, sizeof text, "%.0f KiB", bytes / kibibyte);
  else if (bytes < gibibyte)
    std::snprintf(text, sizeof text, "%.0f MiB", bytes / mebibyte);
  else
    std::snprintf(text, sizeof text, "%.1f GiB", bytes / gibibyte);
  return text;
}

LOCKSTEP_COLD_INLINE std::string FreeMemory::text() const {
  return memory_size(static_cast<double>(free_bytes)) + " of " + memory_size(static_cast<double>(total_bytes)) +
         " are free";
}

LOCKSTEP_COLD_INLINE std::optional<FreeMemory> FreeMemory::of_host(std::string const& root) {
  std::optional<FreeMemory> least;
  auto const consider = [&](std::optional<FreeMemory> const& found) {
    if (found && (!least || found->free_bytes < least->free_bytes)) least = found;
  };
  consider(of_machine(root));
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/user.slice" or "4:memory:/docker/1f2e"
    auto const kinds = line.find(':'), path = kinds == line.npos ? line.npos : line.find(':', kinds + 1);
    if (path == line.npos) continue;
    auto const kind = line.substr(kinds + 1, path - kinds - 1);
    if (!kind.empty() && kind != "memory") continue;
    auto const folder = root + (kind.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    for (auto name = line.substr(path + 1);; name.resize(name.rfind('/'))) {  // a group is within its parents' limits
      if (name == "/") name.clear();
      consider(of_group(folder + name, kind.empty()));
      if (name.rfind('/') == name.npos) break;
    }
  }
  consider(of_address_space(root));
  return least;
}

LOCKSTEP_COLD_INLINE std::optional<std::uint64_t> FreeMemory::number_in(std::string const& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // "max"
}

LOCKSTEP_COLD_INLINE std::optional<std::uint64_t> FreeMemory::sum_in(std::string const& path, std::string_view first,
                                                                     std::string_view second) {
  std::ifstream file(path);
  std::optional<std::uint64_t> sum;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t number = 0;
    if (words >> name >> number && (name == first || name == second)) sum = sum.value_or(0) + number;
  }
  return sum;
}

LOCKSTEP_COLD_INLINE FreeMemory FreeMemory::of(std::uint64_t total, std::uint64_t used, Limit limit) {
  return {total - std::min(total, used), total, limit};
}

LOCKSTEP_COLD_INLINE std::optional<FreeMemory> FreeMemory::of_machine(std::string const& root) {
  auto const file = root + "/proc/meminfo";
  auto const free = sum_in(file, "MemAvailable:", "SwapFree:"), total = sum_in(file, "MemTotal:", "SwapTotal:");
  if (!free || !total) return std::nullopt;
  return FreeMemory{*free * kibibyte, *total * kibibyte};
}

LOCKSTEP_COLD_INLINE std::optional<FreeMemory> FreeMemory::of_group(std::string const& folder, bool unified) {
  auto const most = number_in(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
  auto const used = number_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!most || !used) return std::nullopt;
  auto const cached = unified ? sum_in(folder + "/memory.stat", "active_file", "inactive_file")
                              : sum_in(folder + "/memory.stat", "total_active_file", "total_inactive_file");
  return of(*most, *used - std::min(*used, cached.value_or(0)), Limit::control_group);
}

LOCKSTEP_COLD_INLINE std::optional<FreeMemory> FreeMemory::of_address_space(std::string const& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  auto const pages = number_in(root + "/proc/self/statm");
  if (!pages) return std::nullopt;
  return of(limit.rlim_cur, *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)), Limit::address_space);
}

}}  // namespace lockstep
