// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Division of each row by its Euclidean norm.
template <class Space>
struct L2Normalize : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct L2Normalize<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes reciprocals[r] = 1 / max(|x[r]|, epsilon) and y[r] = x[r] * reciprocals[r]. The backward pass needs the
  /// reciprocals; null ones are not written.
  /// @shape x, y [rows, width]   @shape reciprocals [rows]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Scalar epsilon, Vector<Scalar> reciprocals,
                      Matrix<Scalar> y) {
    auto const width = x.extent[1];
    stream.pool().for_ranges(x.extent[0], rows_per_task, [=](Index begin, Index end) {
      with_best_instructions([=](auto vectors) {
        for (Index row = begin; row < end; ++row) {
          auto const* const from = x.data + row * width;
          auto* const to = y.data + row * width;
          Scalar const length = std::sqrt(detail::dot(vectors, from, from, width));
          Scalar const reciprocal = 1 / (length > epsilon ? length : epsilon);
          for (Index c = 0; c < width; ++c) to[c] = from[c] * reciprocal;
          if (reciprocals.data) reciprocals.data[row] = reciprocal;
        }
      });
    });
  }

  /// Computes dx[r] = reciprocal * (dy[r] - n (n . dy[r])) with n = x[r] * reciprocal, or adds it to dx. The second
  /// term is zero if epsilon was the larger.
  /// @shape dy, x, dx [rows, width]   @shape reciprocals [rows]
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Scalar epsilon,
                       Vector<Scalar const> reciprocals, Matrix<Scalar> dx, Write write) {
    auto const width = x.extent[1];
    stream.pool().for_ranges(x.extent[0], rows_per_task, [=](Index begin, Index end) {
      with_best_instructions([=](auto vectors) {
        for (Index row = begin; row < end; ++row) {
          auto const at = row * width;
          Scalar const reciprocal = reciprocals.data[row];
          Scalar const slope = projection(detail::dot(vectors, x.data + at, dy.data + at, width), reciprocal, epsilon);
          detail::write_each(at, at + width, dx.data, write,
                             [=](Index i) { return reciprocal * (dy.data[i] - x.data[i] * slope); });
        }
      });
    });
  }

  /// Returns the factor of x in the second term.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar projection(Scalar dot, Scalar reciprocal,
                                                                       Scalar epsilon) noexcept {
    return reciprocal < 1 / epsilon ? dot * reciprocal * reciprocal : Scalar{0};
  }

 private:
  static constexpr Index rows_per_task = 64;
};

}}}  // namespace lockstep::kernel
