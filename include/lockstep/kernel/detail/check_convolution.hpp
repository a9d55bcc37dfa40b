// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution_shape.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// The numbers of elements of x, weight and y, of a convolution or of one of its gradients.
/// A batch without rows may have no places either, as series padded to their longest have none.
/// @throws ShapeError when the kernel is larger than the padded input, or an extent is another
inline void check_convolution(ConvolutionShape const& shape, Index x, Index weight, Index y) {
  expect<ShapeError>(shape.rows == 0 || shape.output_places() > 0, [&] {
    return "Convolution: x has extent " + to_string(shape.extent) + ", with " + to_string(shape.padding) +
           " of padding on either side, and the kernel has " + to_string(shape.kernel) +
           "; the kernel must fit into the padded input";
  });
  auto const wanted_x = shape.rows * shape.input_size(), wanted_y = shape.rows * shape.output_size();
  expect<ShapeError>(x == wanted_x && y == wanted_y && weight == shape.weight_size(), [&] {
    return "Convolution: x, weight and y have " + std::to_string(x) + ", " + std::to_string(weight) + " and " +
           std::to_string(y) + " elements; the shape needs " + std::to_string(wanted_x) + ", " +
           std::to_string(shape.weight_size()) + " and " + std::to_string(wanted_y);
  });
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
