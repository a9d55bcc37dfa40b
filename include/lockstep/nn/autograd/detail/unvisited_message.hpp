// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Returns the message for a parameter or buffer that forward uses but `visit` does not name, so that it has no offset.
[[nodiscard]] inline std::string unvisited_message(std::vector<Index> const& shape) {
  std::string extents;
  for (auto extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  return "Context: forward uses a tensor of shape [" + extents +
         "] that the model's visit does not name; have visit call each(\"name\", layer_) for every layer";
}

}}}  // namespace lockstep::nn::detail
