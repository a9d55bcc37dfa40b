// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/scratch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// A layer's result in the compute type, and where and how to store it.
template <class Real, class Scalar, class Space>
struct Staged {
  TensorView<Real const, 1, Space> from;
  TensorView<Scalar, 1, Space> to;
  Write write;
  float const* scale;  // factor of a loss's gradient, or null
};

/// Memory of nn::Staging for the current layer: temporary numbers, and results to store at its end.
template <class Real, class Scalar, class Space>
struct StagingMemory {
  memory::Scratch<memory::DefaultResource<Space>> scratch{};
  std::vector<Staged<Real, Scalar, Space>> results{};
};

}}}  // namespace lockstep::nn::detail
