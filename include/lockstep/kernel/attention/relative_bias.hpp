// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/attention/detail/check_relative_bias.hpp>
#include <lockstep/kernel/attention/relative_buckets.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Bias of attention by distance, from a table of buckets.
template <class Space>
struct RelativeBias : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct RelativeBias<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes bias[h, d] = table[bucket of distance first + d, h].
  /// @shape table [buckets.count, heads]   @shape bias [heads, distances]
  /// @determinism bitwise
  /// @throws ShapeError if the shapes disagree; reports both
  template <class Scalar>
  static void forward(Stream, RelativeBuckets const& buckets, Index first, Matrix<Scalar const> table,
                      Matrix<Scalar> bias) {
    detail::check_relative_bias(buckets, table.extent, bias.extent);
    auto const heads = bias.extent[0], distances = bias.extent[1];
    for (Index bucket = 0; bucket < buckets.count; ++bucket) {
      auto const [begin, end] = buckets.range_of(bucket, first, distances);
      for (Index h = 0; h < heads; ++h)
        std::fill(bias.data + h * distances + begin, bias.data + h * distances + end, table.data[bucket * heads + h]);
    }
  }

  /// Computes dtable[b, h] = the sum over the distances of bucket b, in order, of dbias[h, d], or adds it to dtable.
  template <class Scalar>
  static void backward(Stream, RelativeBuckets const& buckets, Index first, Matrix<Scalar const> dbias,
                       Matrix<Scalar> dtable, Write write) {
    detail::check_relative_bias(buckets, dtable.extent, dbias.extent);
    auto const heads = dbias.extent[0], distances = dbias.extent[1];
    for (Index bucket = 0; bucket < buckets.count; ++bucket) {
      auto const [begin, end] = buckets.range_of(bucket, first, distances);
      for (Index h = 0; h < heads; ++h) {
        Scalar sum = 0;
        for (Index d = begin; d < end; ++d) sum += dbias.data[h * distances + d];
        auto& to = dtable.data[bucket * heads + h];
        to = write == Write::add ? to + sum : sum;
      }
    }
  }
};

}}}  // namespace lockstep::kernel
