// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/nn/parameter.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// A tensor that a model keeps but does not learn, such as the running statistics of BatchNorm: no gradient, no
/// optimizer. Forward writes it in training and reads it in evaluation. Like a Parameter it is named by `visit` and
/// holds no pointer: the values lie in an arena of each replica, and `ParameterLayout` fills in the place.
///
/// Replicas are not reduced: each keeps what its own samples gave. Before an evaluation, and in what is saved, the
/// first replica's (rank 0's) count for all.
struct Buffer {
  std::vector<Index> shape;
  Initializer initializer{};  ///< zeros unless it says otherwise
  Index offset = -1;          ///< first element in the arena

  [[nodiscard]] Index size() const {
    Index elements = 1;
    for (auto extent : shape) elements *= extent;
    return elements;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
