// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns x without its gradient, like PyTorch's detach: the same memory, nothing is computed. The layers that made x
/// learn only from x's other uses.
template <class Scalar, int Rank, class Space>
[[nodiscard]] Variable<Scalar, Rank, Space> detach(Variable<Scalar, Rank, Space> const& x) noexcept {
  return {x.value, nullptr};
}
/// Returns a sequence without its gradient.
template <class Scalar, class Space>
[[nodiscard]] Sequence<Scalar, Space> detach(Sequence<Scalar, Space> const& x) noexcept {
  return {detach(x.tokens), x.layout};
}

}}}  // namespace lockstep::nn
