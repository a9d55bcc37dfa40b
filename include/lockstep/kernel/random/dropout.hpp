// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/apply_dropout.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Dropout over samples: forward and backward are the same operation.
template <class Space>
struct Dropout : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Dropout<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y = keep * scale * x, or adds it to y. `mask` determines keep (0 or 1), for element t * width + channel
  /// of the sample, where t is the token. Padding becomes zero, or stays unchanged with `add`.
  /// @shape x [layout.slots, width]   @shape y as x; may be x itself
  /// @determinism bitwise, for any number of threads, and for any position of the sample in any batch
  template <class Scalar>
  static void apply(Stream stream, DropoutMask mask, SequenceLayout<HostSpace> layout, Matrix<Scalar const> x,
                    Matrix<Scalar> y, Write write) {
    auto const width = x.extent[1];
    detail::for_token_runs(
        stream.pool(), layout,
        [=](Index row, Index t, Index at, Index tokens) {
          with_best_instructions([=] {
            detail::apply_dropout(mask, static_cast<std::uint64_t>(layout.positions.data[row]),
                                  static_cast<std::uint64_t>(t * width), tokens * width, x.data + at * width,
                                  y.data + at * width, write);
          });
        },
        [=](Index at, Index padding) {
          if (write == Write::overwrite) std::fill_n(y.data + at * width, padding * width, Scalar{0});
        });
  }
};

}}}  // namespace lockstep::kernel
