// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <span>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/reduction/sum_of_squares.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Euclidean norm of all gradients together, and the clipping factor that follows from it.
struct GlobalNorm {
  double sum_of_squares = 0;  ///< of the gradient of the loss sum; infinite or nan if an element is

  /// Measures the gradients of the loss sum in one pass; allocates nothing. Untouched rows of `tables` count as zero.
  /// @determinism bitwise, for any number of threads
  template <class Scalar, class Space>
  [[nodiscard]] static GlobalNorm of(memory::Stream<Space> stream, TensorView<Scalar, 1, Space> gradients,
                                     std::span<kernel::TouchedRows const> tables = {}) {
    using Element = std::remove_const_t<Scalar>;
    return {kernel::SumOfSquares<Space>::template run<Element>(stream, gradients, tables)};
  }

  /// Returns false if an element is infinite or nan: skip the step.
  [[nodiscard]] bool finite() const noexcept { return std::isfinite(sum_of_squares); }
  /// Returns |G|, the norm of the sum's gradient.
  [[nodiscard]] double norm() const noexcept { return std::sqrt(sum_of_squares); }

  /// Returns the norm of gradients before they were multiplied by `scale`, a power of two.
  [[nodiscard]] GlobalNorm unscaled(double scale) const noexcept { return {sum_of_squares / (scale * scale)}; }

  /// Returns the factor that reduces the norm of the mean's gradient, |G| / weight, to `max_norm`:
  ///   clip = min(1, max_norm * weight / |G|)
  [[nodiscard]] double clip(double max_norm, double weight) const noexcept {
    auto const allowed = max_norm * weight;
    return norm() > allowed ? allowed / norm() : 1;
  }
};

}}}  // namespace lockstep::optim
