// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/nn/autograd/parameter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A tensor that a model keeps but does not learn, such as the running statistics of BatchNorm. It has no gradient and
/// no optimizer state. Forward writes it in training and reads it in evaluation. `visit` names buffers like parameters.
/// A buffer holds no pointer: each replica has an arena for the values, and `ParameterLayout` fills in the offset.
///
/// Buffers are not reduced over replicas: each replica keeps the values from its own samples. Evaluations and
/// checkpoints use the values of the first replica (rank 0).
struct Buffer {
  std::vector<Index> shape;   ///< extents; empty for a single number
  Initializer initializer{};  ///< zeros by default
  Index offset = -1;          ///< first element in the arena

  /// Returns the number of elements.
  [[nodiscard]] Index size() const {
    Index elements = 1;
    for (auto extent : shape) elements *= extent;
    return elements;
  }
};

}}}  // namespace lockstep::nn
