// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution_shape.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Checks the numbers of elements of x, weight and y, for a convolution or one of its gradients. A batch without rows
/// may have no positions, such as padded time series of length 0.
/// @throws ShapeError if the kernel is larger than the padded input, the groups do not divide the channels, or a size
/// differs
inline void check_convolution(ConvolutionShape const& shape, Index x, Index weight, Index y) {
  auto const groups = shape.groups;
  expect<ShapeError>(groups >= 1 && shape.inputs % groups == 0 && shape.outputs % groups == 0, [&] {
    return "Convolution: " + std::to_string(shape.inputs) + " inputs and " + std::to_string(shape.outputs) +
           " outputs in " + std::to_string(groups) + " groups; the groups must divide both";
  });
  expect<ShapeError>(shape.rows == 0 || shape.output_positions() > 0, [&] {
    bool const even = shape.padding == shape.padding_after, dense = shape.dilation == Extents<3>{1, 1, 1};
    return "Convolution: x has extent " + to_string(shape.extent) + ", with " + to_string(shape.padding) +
           (even ? " of padding on either side"
                 : " of padding before and " + to_string(shape.padding_after) + " after") +
           ", and the kernel has " + to_string(shape.kernel) +
           (dense ? "" : " with dilation " + to_string(shape.dilation)) + "; the kernel must fit into the padded input";
  });
  auto const wanted_x = shape.rows * shape.input_size(), wanted_y = shape.rows * shape.output_size();
  expect<ShapeError>(x == wanted_x && y == wanted_y && weight == shape.weight_size(), [&] {
    return "Convolution: x, weight and y have " + std::to_string(x) + ", " + std::to_string(weight) + " and " +
           std::to_string(y) + " elements; the shape needs " + std::to_string(wanted_x) + ", " +
           std::to_string(shape.weight_size()) + " and " + std::to_string(wanted_y);
  });
}

/// @throws ShapeError unless a bias, or its gradient, has one element for each output, or is null
template <class Bias>
void check_convolution_bias(ConvolutionShape const& shape, Bias const& bias) {
  expect<ShapeError>(!bias.data || bias.size() == shape.outputs, [&] {
    return "Convolution: the bias has " + std::to_string(bias.size()) + " elements; " + std::to_string(shape.outputs) +
           " outputs need one each";
  });
}

}}}  // namespace lockstep::kernel::detail
