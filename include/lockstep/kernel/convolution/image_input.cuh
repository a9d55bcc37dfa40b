// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/convolution/image_input.hpp>
#include <lockstep/kernel/detail/vectorized_access.cuh>

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
  static constexpr std::size_t max_channels = detail::ImageChannels<float>::capacity;

  /// @shape table: not used on a device
  [[nodiscard]] static constexpr Index table_elements(Index) noexcept { return 0; }

  /// @throws ShapeError for more than `max_channels` channels
  template <class Scalar>
  static void normalize(Stream stream, Matrix<std::uint8_t const> x, std::span<double const> mean,
                        std::span<double const> deviation, Matrix<Scalar> y, Accumulate<Scalar>*) {
    using Sum = Accumulate<Scalar>;
    auto const channels = x.extent[1];
    expect<ShapeError>(mean.size() <= max_channels, [&] {
      return "ImageInput: " + std::to_string(mean.size()) + " channels, but CUDA supports at most " +
             std::to_string(max_channels);
    });
    detail::ImageChannels<Sum> of;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      of.offset[c] = static_cast<Sum>(255 * mean[c]);
      of.factor[c] = static_cast<Sum>(1 / (255 * deviation[c]));
    }
    auto const name = "kernel::ImageInput";
    detail::for_vectorized<Scalar>(name, stream, x.size(), [=] __device__(detail::WidestAccess<Scalar> const& access) {
      detail::AccessNumbers<Scalar> values;
      access.load_as(x.data, values);
      auto c = static_cast<std::size_t>(access.first() % channels);
      for (auto& value : values) {
        value = (value - of.offset[c]) * of.factor[c];
        c = c + 1 < static_cast<std::size_t>(channels) ? c + 1 : 0;
      }
      access.put(values, y.data);
    });
  }
};

}}}  // namespace lockstep::kernel
