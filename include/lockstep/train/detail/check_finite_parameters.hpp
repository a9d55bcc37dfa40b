// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the index of the first number that is NaN or infinite, if any. It reads at the speed of memory.
[[nodiscard]] std::optional<std::size_t> first_not_finite(std::span<float const> numbers) noexcept;

/// Whether a number is NaN.
[[nodiscard]] bool has_nan(std::span<float const> numbers) noexcept;

/// Thrown by a save for parameters that are NaN or infinite, or buffers that are NaN; `describe_not_finite` says which.
struct NotFinite {};

/// Describes the first parameter that is NaN or infinite, or the first buffer that is NaN, as in "the parameter
/// \"head.weight\" is nan (element 3 of 8)". Empty if there is none. A buffer may start at infinity, as the smallest
/// value so far.
/// @shape values [layout.size()]   @shape buffers [layout.buffer_size()], or empty
[[nodiscard]] std::string describe_not_finite(nn::ParameterLayout const& layout, std::span<float const> values,
                                              std::span<float const> buffers);

/// Checks parameters and buffers that are to be saved.
/// @param what the beginning of the message, such as "training: after step 12 "; @param remedy its end
/// @throws Error that names the first that is not finite
void check_finite_parameters(nn::ParameterLayout const& layout, std::span<float const> values,
                             std::span<float const> buffers, std::string const& what, char const* remedy);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/check_finite_parameters.ipp>
#endif
