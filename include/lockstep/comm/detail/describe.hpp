// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/comm/detail/rank_block.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// "all_reduce of 1000 float32 (sum, 3 riders)".
[[nodiscard]] inline std::string describe(Descriptor const& d) {
  auto const count = std::to_string(d.count);
  switch (d.kind) {
    case Kind::all_reduce:
      return "all_reduce of " + count + " " + name(d.type) + (d.operation == Operation::sum ? " (sum, " : " (max, ") +
             std::to_string(d.riders) + (d.riders == 1 ? " rider)" : " riders)");
    case Kind::broadcast:
      return "broadcast of " + count + " bytes from rank " + std::to_string(d.root);
    case Kind::all_gather:
      return "all_gather of " + count + " bytes per rank";
    case Kind::barrier:
      return "barrier";
    case Kind::allocate:
      return "allocate of " + count + " bytes at offset " + std::to_string(d.address);
  }
  return "?";
}

/// Whether two ranks mean the same operation. Where their memory lies is their own affair, except when they ask for it.
[[nodiscard]] inline bool same(Descriptor const& a, Descriptor const& b) noexcept {
  return a.kind == b.kind && a.type == b.type && a.operation == b.operation && a.riders == b.riders &&
         a.root == b.root && a.count == b.count && (a.kind != Kind::allocate || a.address == b.address);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
