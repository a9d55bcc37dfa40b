// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn::detail {

/// What a layer computed, and where and how it is to be stored.
template <class Real, class Scalar, class Space>
struct Staged {
  TensorView<Real const, 1, Space> from;
  TensorView<Scalar, 1, Space> to;
  Write write;
  float const* scale;  // of a loss's gradient, or null
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn::detail
