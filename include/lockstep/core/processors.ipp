// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <thread>

#include <lockstep/core/processors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE int allowed_processors() noexcept {
  cpu_set_t given;
  if (::sched_getaffinity(::getpid(), sizeof given, &given) == 0) return std::max(1, CPU_COUNT(&given));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // more than fit a cpu_set_t
}

LOCKSTEP_INLINE std::optional<int> processor_quota(std::string const& root) {
  std::optional<double> least;
  auto const consider = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least.value_or(quota / period), quota / period);
  };
  // Calls read(folder) for a group's folder and those above it. A container may not see the folders of its host's path;
  // its own limit is then at the mount point.
  auto const upwards = [](std::string const& mount, std::string path, auto const& read) {
    for (;;) {
      read(mount + path + "/");
      if (path.empty() || path == "/") return;
      path.erase(path.rfind('/'));
    }
  };
  auto const number_in = [](std::string const& file) {
    double number = 0;
    std::ifstream(file) >> number;
    return number;
  };
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    auto const first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    auto const controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    auto const path = line.substr(second + 1);
    if (controllers == ",,") {  // version 2
      for (auto const* const mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        upwards(root + mount, path, [&](std::string const& folder) {
          std::ifstream file(folder + "cpu.max");
          std::string quota;
          double period = 0;
          if (file >> quota >> period && quota != "max") consider(std::strtod(quota.c_str(), nullptr), period);
        });
    } else if (controllers.find(",cpu,") != std::string::npos) {
      for (auto const* const mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"})
        upwards(root + mount, path, [&](std::string const& folder) {
          consider(number_in(folder + "cpu.cfs_quota_us"), number_in(folder + "cpu.cfs_period_us"));
        });
    }
  }
  if (!least) return std::nullopt;
  return std::max(1, static_cast<int>(std::min(*least, 1e6)));
}

LOCKSTEP_INLINE int processors() noexcept {
  auto const allowed = allowed_processors();
  try {
    return std::min(allowed, processor_quota().value_or(allowed));
  } catch (std::exception const&) {  // no memory
    return allowed;
  }
}

}}  // namespace lockstep
