// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/policy/detail/common_agreement.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

LOCKSTEP_COLD_INLINE void add_entries(Agreement& agreement, char const* kind,
                                      std::vector<nn::ParameterLayout::Entry> const& entries) {
  for (auto const& entry : entries) {
    std::string value = entry.by_rows() ? "float32 by rows [" : "float32 [";
    for (auto const extent : entry.shape) value += (value.back() == '[' ? "" : ", ") + std::to_string(extent);
    agreement.add(kind + entry.name, value + "]");
  }
}

}}}  // namespace lockstep::parallel::detail
