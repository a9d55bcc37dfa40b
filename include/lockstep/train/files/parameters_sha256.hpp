// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>

#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Returns the SHA-256 of all parameters' bytes in the order of their names, without padding. Two runs with equal
/// digests have bit-identical parameters.
/// @shape values [layout.size()]
[[nodiscard]] std::string parameters_sha256(nn::ParameterLayout const& layout, std::span<float const> values);

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/files/parameters_sha256.ipp>
#endif
