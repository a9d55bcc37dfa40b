// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/attention/detail/check_relative_bias.hpp>
#include <lockstep/kernel/attention/relative_bias.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and order of sums, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
template <>
struct RelativeBias<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, RelativeBuckets const& buckets, Index first,
                      Matrix<Accumulate<Scalar> const> table, Matrix<Scalar> bias) {
    detail::check_relative_bias(buckets, table.extent, bias.extent);
    auto const heads = bias.extent[0], distances = bias.extent[1];
    detail::for_elements("kernel::RelativeBias::forward", stream, bias.size(), [=] __device__(Index i) {
      bias.data[i] = static_cast<Scalar>(table.data[buckets.of(first + i % distances) * heads + i / distances]);
    });
  }

  /// One thread computes one element of the table, from the distances of its bucket.
  template <class Scalar>
  static void backward(Stream stream, RelativeBuckets const& buckets, Index first, Matrix<Scalar const> dbias,
                       Matrix<Accumulate<Scalar>> dtable, Write write) {
    detail::check_relative_bias(buckets, dtable.extent, dbias.extent);
    auto const heads = dbias.extent[0], distances = dbias.extent[1];
    detail::for_elements("kernel::RelativeBias::backward", stream, dtable.size(), [=] __device__(Index i) {
      using Sum = Accumulate<Scalar>;
      Sum sum = 0;
      auto const range = buckets.range_of(i / heads, first, distances);
      for (auto d = range.begin; d < range.end; ++d) sum += static_cast<Sum>(dbias.data[i % heads * distances + d]);
      dtable.data[i] = write == Write::add ? dtable.data[i] + sum : sum;
    });
  }
};

}}}  // namespace lockstep::kernel
