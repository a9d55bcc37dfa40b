// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/timeline.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the position of the bracket that the last `close` of `text` closes, or 0.
[[nodiscard]] std::size_t opening(std::string_view text, char open, char close) noexcept;

/// Removes the last part of a qualified name and returns it without template arguments: "f" of "Type a::b<T>::f<U>".
[[nodiscard]] std::string_view take_last_part(std::string_view& name) noexcept;

/// Returns the name of a layer or function from the type of a closure that it registered. It is the class of a member
/// function, "Linear", or the function, "mean_pool". If the compiler does not provide it, it is "operation".
/// @param type the result of std::type_info::name in the Itanium C++ ABI
[[nodiscard]] std::string operation_name(char const* type);

/// Layer of a model and name of its operation.
struct OperationName {
  std::string layer;      ///< named like parameters, as "encoder.0.attention.query"; empty for the model itself
  std::string operation;  ///< "Linear"

  [[nodiscard]] std::string const& shown() const noexcept { return layer.empty() ? operation : layer; }
};

/// Returns the dotted prefix that two names share: "encoder" for "encoder.0" and "encoder.1".
[[nodiscard]] std::string common_prefix(std::string_view a, std::string_view b);

/// Names the operations among a device's spans; other spans get no name. An operation with parameters gets the layer
/// that its parameters share. An operation without parameters gets the innermost layer that contains the adjacent ones
/// with parameters.
[[nodiscard]] std::vector<OperationName> named_spans(Timeline const& spans, nn::ParameterLayout const& layout);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trace/detail/named_spans.ipp>
#endif
