// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep_test {

/// A host vector as a tensor.
template <class T, class... I>
[[nodiscard]] lockstep::TensorView<T, sizeof...(I), lockstep::HostSpace> view(std::vector<T>& v, I... extents) {
  return {v.data(), {static_cast<lockstep::Index>(extents)...}};
}
template <class T, class... I>
[[nodiscard]] lockstep::TensorView<T const, sizeof...(I), lockstep::HostSpace> view(std::vector<T> const& v,
                                                                                    I... extents) {
  return {v.data(), {static_cast<lockstep::Index>(extents)...}};
}

}  // namespace lockstep_test
