// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Dot product of each row of one matrix with the row of the same number of another.
template <class Space>
struct DotByRow : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct DotByRow<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes z[r] = a[r] . b[r].
  /// @shape a, b [rows, width]   @shape z [rows]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> a, Matrix<Scalar const> b, Vector<Scalar> z) {
    auto const width = a.extent[1];
    stream.pool().for_ranges(a.extent[0], rows_per_task, [=](Index begin, Index end) {
      with_best_instructions([=](auto vectors) {
        for (Index row = begin; row < end; ++row)
          z.data[row] = detail::dot(vectors, a.data + row * width, b.data + row * width, width);
      });
    });
  }

  /// Computes da[r] = dz[r] b[r], or adds it to da. For the gradient of b, swap a and b.
  /// @shape dz [rows]   @shape b, da [rows, width]
  template <class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dz, Matrix<Scalar const> b, Matrix<Scalar> da, Write write) {
    auto const width = b.extent[1];
    stream.pool().for_ranges(b.extent[0], rows_per_task, [=](Index begin, Index end) {
      with_best_instructions([=] {
        for (Index row = begin; row < end; ++row) {
          Scalar const by = dz.data[row];
          auto const at = row * width;
          detail::write_each(at, at + width, da.data, write, [=](Index i) { return by * b.data[i]; });
        }
      });
    });
  }

 private:
  static constexpr Index rows_per_task = 64;
};

}}}  // namespace lockstep::kernel
