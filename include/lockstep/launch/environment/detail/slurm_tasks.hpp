// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns the number of tasks of one node in Slurm's compact list: "4(x2),3" means 4, 4 and 3. Returns -1 for other
/// lists.
[[nodiscard]] constexpr int slurm_tasks_of(std::string_view list, int node) noexcept {
  auto const number = [&list] {
    int value = list.empty() || list[0] < '0' || list[0] > '9' ? -1 : 0;
    for (; !list.empty() && list[0] >= '0' && list[0] <= '9' && value < 1000000; list.remove_prefix(1))
      value = value * 10 + (list[0] - '0');
    return value;
  };
  while (node >= 0) {
    int const tasks = number();
    int nodes = 1;
    if (list.substr(0, 2) == "(x") {
      list.remove_prefix(2);
      nodes = number();
      if (list.empty() || list[0] != ')') return -1;
      list.remove_prefix(1);
    }
    if (tasks < 1 || nodes < 1) return -1;
    if (node < nodes) return tasks;
    node -= nodes;
    if (list.empty() || list[0] != ',') return -1;
    list.remove_prefix(1);
  }
  return -1;
}

}}}  // namespace lockstep::launch::detail
