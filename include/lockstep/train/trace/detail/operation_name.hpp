// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the position of the bracket that the last `close` of `text` closes, or 0.
[[nodiscard]] std::size_t opening(std::string_view text, char open, char close) noexcept;

/// Removes the last part of a qualified name and returns it without template arguments: "f" of "Type a::b<T>::f<U>".
[[nodiscard]] std::string_view take_last_part(std::string_view& name) noexcept;

/// Returns the name of a layer or function from the type of a closure that it registered. It is the class of a member
/// function, "Linear", or the function, "mean_pool". If the compiler does not provide it, it is "operation".
/// @param type the result of std::type_info::name in the Itanium C++ ABI
[[nodiscard]] std::string operation_name(char const* type);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trace/detail/operation_name.ipp>
#endif
