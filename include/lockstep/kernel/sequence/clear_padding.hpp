// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Clears padding for layers that combine adjacent tokens.
template <class Space>
struct ClearPadding : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct ClearPadding<HostSpace> : detail::KernelTypes<HostSpace> {
  using Lengths = Vector<std::int32_t const>;  ///< tokens of each sequence

  /// Computes y = x with zeros in padding, or y += x in tokens only. The latter is the former's gradient.
  /// @shape x, y [layout.slots, width]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void run(Stream stream, SequenceLayout<HostSpace> const& layout, Matrix<Scalar const> x, Matrix<Scalar> y,
                  Write write) {
    auto const width = x.extent[1];
    stream.pool().for_ranges(layout.slots, std::max<Index>(1, 8192 / std::max<Index>(1, width)),
                             [=](Index slot, Index end) {
                               for (; slot < end; ++slot) {
                                 auto const* const from = x.data + slot * width;
                                 auto* const to = y.data + slot * width;
                                 if (!layout.is_token(slot)) {
                                   if (write == Write::overwrite) std::fill_n(to, width, Scalar{0});
                                 } else if (write == Write::overwrite) {
                                   std::copy_n(from, width, to);
                                 } else {
                                   for (Index c = 0; c < width; ++c) to[c] += from[c];
                                 }
                               }
                             });
  }

  /// Computes for each sequence the number of positions of a window of `reach` tokens that advances by `stride`.
  /// `padding` counts the padding of both sides. Results are at most `max_count`, and 0 for an empty sequence.
  /// @shape lengths, to [rows]
  static void window_counts(Stream, Lengths lengths, Index reach, Index stride, Index padding, Index max_count,
                            Vector<std::int32_t> to) {
    for (Index row = 0; row < lengths.size(); ++row)
      to(row) = window_count(lengths(row), reach, stride, padding, max_count);
  }
  /// Returns this number for a sequence of `tokens` tokens.
  [[nodiscard]] static constexpr std::int32_t window_count(std::int32_t tokens, Index reach, Index stride,
                                                           Index padding, Index max_count) noexcept {
    auto const room = Index{tokens} + padding - reach;
    return static_cast<std::int32_t>(tokens <= 0 || room < 0 ? 0 : std::min(max_count, room / stride + 1));
  }
};

}}}  // namespace lockstep::kernel
