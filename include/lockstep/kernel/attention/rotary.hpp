// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Direction of a rotation.
enum class Rotation {
  forward,                                                         ///< for values
  inverse,                                                         ///< for gradients
  forwards [[deprecated("kernel::Rotation::forward")]] = forward,  ///< deprecated: use forward
  back [[deprecated("kernel::Rotation::inverse")]] = inverse,      ///< deprecated: use inverse
};

/// Rotary position embedding: rotates each head's queries and keys by angles proportional to the token's position in
/// its sequence. Their dot products then depend on the distance of the two.
template <class Space>
struct Rotary : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Rotary<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes table[p, j] = the cosine of the angle (first + p) base^(-2 j / width), and table[p, width / 2 + j] its
  /// sine.
  /// @shape table [positions, width], overwritten; width is the width of a head
  template <class Scalar>
  static void fill(Stream stream, double base, Index first, Matrix<Scalar> table) {
    auto const width = table.extent[1];
    stream.pool().for_ranges(table.extent[0], 16, [=](Index position, Index end) {
      for (; position < end; ++position)
        for (Index j = 0; j < width / 2; ++j) {
          auto const angle = angle_of(base, first + position, j, width);
          table(position, j) = static_cast<Scalar>(std::cos(angle));
          table(position, width / 2 + j) = static_cast<Scalar>(std::sin(angle));
        }
    });
  }

  /// Rotates the pairs of channels j and j + width / 2 of each head by the table's angle for the token's position.
  /// @shape table [layout.length, width]   @shape x [layout.slots, heads * width], changed in place
  /// @determinism bitwise, for any number of threads
  /// @source Su et al.: RoFormer (2021), with channels paired as in GPT-NeoX and Llama
  template <class Scalar>
  static void run(Stream stream, SequenceLayout<HostSpace> const& layout, Matrix<Scalar const> table, Rotation rotation,
                  Matrix<Scalar> x) {
    auto const width = table.extent[1], all = x.extent[1];
    stream.pool().for_ranges(layout.slots, 32, [=](Index slot, Index end) {
      with_best_instructions([=] {
        auto row = layout.row_of(slot);
        for (auto at = slot; at < end; ++at) {
          while (at >= layout.end(row)) ++row;
          Scalar const *const cosines = table.data + (at - layout.start(row)) * width, *const sines =
                                                                                           cosines + width / 2;
          for (Index head = 0; head < all; head += width) {
            Scalar* const __restrict left = x.data + at * all + head;
            Scalar* const __restrict right = left + width / 2;
            for (Index j = 0; j < width / 2; ++j) {
              Scalar const a = left[j], b = right[j], sine = rotation == Rotation::inverse ? -sines[j] : sines[j];
              left[j] = a * cosines[j] - b * sine;
              right[j] = b * cosines[j] + a * sine;
            }
          }
        }
      });
    });
  }

  /// Returns the angle in radians.
  [[nodiscard]] static double angle_of(double base, Index position, Index j, Index width) noexcept {
    return static_cast<double>(position) * std::pow(base, -2 * static_cast<double>(j) / static_cast<double>(width));
  }
};

}}}  // namespace lockstep::kernel
