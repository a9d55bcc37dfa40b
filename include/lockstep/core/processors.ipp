// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/core/processors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE int allowed_processors() noexcept {
  cpu_set_t given;
  if (::sched_getaffinity(::getpid(), sizeof given, &given) == 0) return std::max(1, CPU_COUNT(&given));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // more than fit a cpu_set_t
}

namespace detail {

/// A folder of a control group. Version 2 of the interface has other files than version 1.
struct ControlGroup {
  std::string folder;
  bool is_version_2;
};

/// Returns the folders of this process's control group and of the groups above it. A container may not see the folders
/// of its host's path; its own limit is then at the mount point.
LOCKSTEP_COLD_INLINE std::vector<ControlGroup> control_groups(std::string const& root) {
  std::vector<ControlGroup> all;
  auto const upwards = [&](std::string const& mount, std::string path, bool is_version_2) {
    for (;;) {
      all.push_back({mount + path + "/", is_version_2});
      if (path.empty() || path == "/") return;
      path.erase(path.rfind('/'));
    }
  };
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    auto const first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    auto const controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    auto const path = line.substr(second + 1);
    if (controllers == ",,") {
      for (auto const* const mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) upwards(root + mount, path, true);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      for (auto const* const mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"})
        upwards(root + mount, path, false);
    }
  }
  return all;
}

}  // namespace detail

LOCKSTEP_COLD_INLINE std::optional<int> processor_quota(std::string const& root) {
  std::optional<double> least;
  auto const consider = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least.value_or(quota / period), quota / period);
  };
  auto const number_in = [](std::string const& file) {
    double number = 0;
    std::ifstream(file) >> number;
    return number;
  };
  for (auto const& [folder, is_version_2] : detail::control_groups(root)) {
    if (is_version_2) {
      std::ifstream file(folder + "cpu.max");
      std::string quota;
      double period = 0;
      if (file >> quota >> period && quota != "max") consider(std::strtod(quota.c_str(), nullptr), period);
    } else {
      consider(number_in(folder + "cpu.cfs_quota_us"), number_in(folder + "cpu.cfs_period_us"));
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

LOCKSTEP_COLD_INLINE double throttled_seconds(std::string const& root) {
  double most = 0;
  for (auto const& [folder, is_version_2] : detail::control_groups(root)) {
    std::ifstream file(folder + "cpu.stat");
    std::string name;
    for (double value = 0; file >> name >> value;)
      if (name == (is_version_2 ? "throttled_usec" : "throttled_time"))
        most = std::max(most, value * (is_version_2 ? 1e-6 : 1e-9));
  }
  return most;
}

LOCKSTEP_INLINE double queued_seconds(int thread, std::string const& root) {
  double ran = 0, queued = 0;
  auto const folder = thread == 0 ? "thread-self" : "self/task/" + std::to_string(thread);
  std::ifstream(root + "/proc/" + folder + "/schedstat") >> ran >> queued;  // nanoseconds
  return queued * 1e-9;
}

LOCKSTEP_COLD_INLINE std::uint64_t processor_set() {
  std::string machine;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> machine;
  auto hash = mix(machine.empty() ? std::string_view("unknown") : machine);
  cpu_set_t given;
  if (::sched_getaffinity(::getpid(), sizeof given, &given) == 0)
    for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &given)) hash = mix(hash, i);
  return hash >> 12;
}

}}  // namespace lockstep
