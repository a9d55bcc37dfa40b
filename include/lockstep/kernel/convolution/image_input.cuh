// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convolution/image_input.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// Offset and factor of each channel.
template <class Scalar>
struct ImageChannels {
  static constexpr std::size_t capacity = 64;
  std::array<Scalar, capacity> offset{}, factor{};
};

}  // namespace detail

/// CUDA version, bit-identical to the host's, queued on the stream. The channels' constants are arguments of the
/// kernel.
template <>
struct ImageInput<CudaSpace> : detail::KernelTypes<CudaSpace> {
  static constexpr std::size_t max_channels =
      detail::ImageChannels<float>::capacity;  ///< most channels of an image: their constants are arguments of the
                                               ///< kernel

  /// Returns 0: a device needs no table.
  [[nodiscard]] static constexpr Index table_elements(Index) noexcept { return 0; }

  /// Computes y[i, c] = (x[i, c] / 255 - mean[c]) / deviation[c]. The last argument is not used.
  /// @throws ShapeError for more than `max_channels` channels
  template <class Scalar>
  static void normalize(Stream stream, Matrix<std::uint8_t const> x, std::span<double const> mean,
                        std::span<double const> deviation, Matrix<Scalar> y, Accumulate<Scalar>*);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/convolution/image_input.icuh>
#endif
