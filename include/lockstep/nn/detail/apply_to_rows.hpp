// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Applies f to x as rows (one for each pixel, voxel or time step) and restores x's extents.
/// @shape returns [rows, …, channels of f(rows)]
template <class Scalar, int Rank, class Space, class Function>
[[nodiscard]] Variable<Scalar, Rank, Space> apply_to_rows(Variable<Scalar, Rank, Space> const& x, Function const& f) {
  auto const y = f(x.as_rows());
  auto extent = x.value.extent;
  extent.back() = y.extent(1);
  return y.reshape(extent);
}

}}}  // namespace lockstep::nn::detail
