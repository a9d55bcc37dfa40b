// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Dropout of whole samples: forward and backward are the same operation.
template <class Space>
struct SampleDropout : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct SampleDropout<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y = keep * scale * x, or adds it to y, including padding. `mask` determines keep (0 or 1), for element 0
  /// of the slot's sample. Dropped samples are not read.
  /// @shape x [layout.slots, width]   @shape y as x; may be x itself
  /// @determinism bitwise, for any number of threads, and for any position of the sample in any batch
  template <class Scalar>
  static void apply(Stream stream, DropoutMask mask, SequenceLayout<HostSpace> layout, Matrix<Scalar const> x,
                    Matrix<Scalar> y, Write write) {
    auto const width = x.extent[1];
    auto const scale = static_cast<Scalar>(mask.scale());
    stream.pool().for_ranges(layout.slots, slots_per_task(width), [=](Index begin, Index end) {
      with_best_instructions([=] {
        for (Index row = layout.row_of(begin), slot = begin, next = begin; slot < end; ++row, slot = next) {
          next = std::min(layout.end(row), end);
          auto const at = slot * width, count = (next - slot) * width;
          if (mask.keeps(static_cast<std::uint64_t>(layout.positions.data[row]), 0)) {
            detail::maybe_in_place(x.data + at, y.data + at, [=](Scalar const* from, Scalar* to) {
              detail::write_each(0, count, to, write, [=](Index i) { return from[i] * scale; });
            });
          } else if (write == Write::overwrite) {
            std::fill_n(y.data + at, count, Scalar{0});
          }
        }
      });
    });
  }

 private:
  [[nodiscard]] static Index slots_per_task(Index width) noexcept {
    return std::max<Index>(1, 8192 / std::max<Index>(1, width));
  }
};

}}}  // namespace lockstep::kernel
