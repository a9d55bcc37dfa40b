// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Converts the bytes of images to numbers.
template <class Space>
struct ImageInput : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct ImageInput<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Returns the number of elements that `normalize` needs for its table of the channels' constants.
  [[nodiscard]] static constexpr Index table_elements(Index channels) noexcept { return 2 * period(channels); }

  /// Computes y[i, c] = (x[i, c] / 255 - mean[c]) / deviation[c] in one pass.
  /// @shape x, y [positions, channels]   @shape mean, deviation [channels]   @shape table [table_elements(channels)]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void normalize(Stream stream, Matrix<std::uint8_t const> x, std::span<double const> mean,
                        std::span<double const> deviation, Matrix<Scalar> y, Scalar* table) {
    // The table repeats the channels' constants, so that they line up with the elements of a vector.
    auto const channels = x.extent[1], length = period(channels);
    Scalar* const offset = table;
    Scalar* const factor = table + length;
    for (Index i = 0; i < length; ++i) {
      auto const c = static_cast<std::size_t>(i % channels);
      offset[i] = static_cast<Scalar>(255 * mean[c]);
      factor[i] = static_cast<Scalar>(1 / (255 * deviation[c]));
    }
    stream.pool().for_ranges(x.size(), length * std::max<Index>(1, 16384 / length), [=](Index begin, Index end) {
      with_best_instructions([=] {
        for (Index first = begin; first < end; first += length) {
          Index const count = std::min(length, end - first);
          for (Index i = 0; i < count; ++i)
            y.data[first + i] = (static_cast<Scalar>(x.data[first + i]) - offset[i]) * factor[i];
        }
      });
    });
  }

 private:
  [[nodiscard]] static constexpr Index period(Index channels) noexcept {
    return channels * ((255 + channels) / channels);
  }
};

}}}  // namespace lockstep::kernel
