// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/kernel/copy/permute.hpp>

/// Permutations for every backend.
namespace permute_cases {
using namespace lockstep;

struct Case {
  std::vector<Index> extent;  // of x
  std::vector<int> axes;

  [[nodiscard]] kernel::PermuteShape shape() const { return kernel::PermuteShape::of(extent, axes); }
  /// Returns y by definition.
  template <class Scalar>
  [[nodiscard]] std::vector<Scalar> permuted(std::vector<Scalar> const& x) const {
    std::vector<Scalar> y;
    auto const rank = extent.size();
    std::vector<Index> at(rank), steps(rank, 1);
    for (std::size_t k = rank; k-- > 1;) steps[k - 1] = steps[k] * extent[k];
    for (std::size_t i = 0; i < x.size(); ++i) {
      Index from = 0;
      for (std::size_t k = 0; k < rank; ++k) from += at[k] * steps[static_cast<std::size_t>(axes[k])];
      y.push_back(x[static_cast<std::size_t>(from)]);
      for (std::size_t k = rank; k-- > 0 && ++at[k] == extent[static_cast<std::size_t>(axes[k])];) at[k] = 0;
    }
    return y;
  }
};

/// No elements, one axis, axes of extent 1, axes that are joined, and both kinds of last axis. Tiles are cut off.
inline std::vector<Case> cases() {
  return {{{0, 3}, {1, 0}},
          {{5}, {0}},
          {{1, 1}, {1, 0}},
          {{3, 4, 5}, {0, 1, 2}},
          {{7, 5}, {1, 0}},
          {{40, 70}, {1, 0}},
          {{2, 33, 65}, {0, 2, 1}},
          {{3, 4, 5}, {1, 0, 2}},
          {{3, 1, 5, 2}, {3, 1, 0, 2}},
          {{2, 3, 4, 5}, {2, 3, 0, 1}},
          {{2, 3, 4, 5, 2}, {4, 2, 0, 3, 1}},
          {{2, 2, 3, 2, 2, 3, 2}, {0, 3, 1, 5, 4, 2, 6}},
          {{2, 2, 2, 2, 3, 2, 2, 3}, {7, 6, 5, 4, 3, 2, 1, 0}}};
}

}  // namespace permute_cases
