// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/variable.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// What x holds, through which no gradient flows: the same memory, as PyTorch's detach, and nothing is computed. Who
/// made x learns from x's other uses only, and not at all where there is none.
template <class Scalar, int Rank, class Space>
[[nodiscard]] Variable<Scalar, Rank, Space> detach(Variable<Scalar, Rank, Space> const& x) noexcept {
  return {x.value, nullptr};
}
template <class Scalar, class Space>
[[nodiscard]] Sequence<Scalar, Space> detach(Sequence<Scalar, Space> const& x) noexcept {
  return x.with(detach(x.tokens));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
