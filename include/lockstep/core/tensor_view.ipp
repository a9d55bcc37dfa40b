// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE std::string to_string(std::span<Index const> extent) {
  std::string out = "[";
  for (std::size_t i = 0; i < extent.size(); ++i) out += (i ? ", " : "") + std::to_string(extent[i]);
  return out + "]";
}

}}  // namespace lockstep
