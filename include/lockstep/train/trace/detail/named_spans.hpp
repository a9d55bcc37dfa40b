// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/timeline.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/trace/detail/operation_name.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Layer of a model and name of its operation.
struct OperationName {
  std::string layer;      ///< named like parameters, as "encoder.0.attention.query"; empty for the model itself
  std::string operation;  ///< "Linear"

  [[nodiscard]] std::string const& shown() const noexcept { return layer.empty() ? operation : layer; }
};

/// Returns the dotted prefix that two names share: "encoder" for "encoder.0" and "encoder.1".
[[nodiscard]] std::string common_prefix(std::string_view a, std::string_view b);

/// Names the operations among a device's spans; other spans get no name. An operation with parameters gets the layer
/// that its parameters share. An operation without parameters gets the innermost layer that contains its neighbors with
/// parameters.
[[nodiscard]] std::vector<OperationName> named_spans(Timeline const& spans, nn::ParameterLayout const& layout);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trace/detail/named_spans.ipp>
#endif
