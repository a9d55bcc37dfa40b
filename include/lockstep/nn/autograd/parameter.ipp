// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/parameter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_COLD_INLINE std::string Parameter::layer(std::string const& kind, int levels) const {
  auto dot = name.rfind('.');
  for (; levels > 1 && dot != std::string::npos; --levels) dot = dot == 0 ? dot - 1 : name.rfind('.', dot - 1);
  return dot == std::string::npos ? kind : kind + " " + name.substr(0, dot);
}

}}}  // namespace lockstep::nn
