// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/device_rules.cuh>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/mask_bits.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/row_dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Number of adjacent channels that a thread of `activate_rows` processes together: with dropout those of one block of
/// random bits, without it those of one access.
template <class Scalar, bool drops>
inline constexpr int activated_together = drops ? 8 : elements_per_access<Scalar>;

/// Number of such groups that a thread loads before it computes the first one.
inline constexpr int activated_in_flight = 2;

inline namespace LOCKSTEP_CUDA_ABI {

/// Returns the rule of an activation that keeps its slope.
template <Activation activation>
[[nodiscard]] __device__ auto rule_of() noexcept {
  if constexpr (activation == Activation::gelu)
    return DeviceGelu{};
  else if constexpr (activation == Activation::gelu_tanh)
    return GeluTanh{};
  else
    return Silu{};
}

/// The activation of one group of channels, and its dropout. `keeps(j)` tells whether element j is kept.
template <Activation activation, bool drops, std::size_t count, class Sum, class Keeps>
__device__ void activate(Sum (&values)[count], Sum (&slopes)[count], Sum scale, Keeps const& keeps) noexcept {
  LOCKSTEP_UNROLL
  for (int j = 0; j < static_cast<int>(count); ++j) {
    Sum const h = values[j];
    if constexpr (keeps_slope(activation)) {
      auto const [value, derivative] = rule_of<activation>().at(h);
      values[j] = value;
      slopes[j] = derivative;
    } else if constexpr (activation == Activation::relu) {
      values[j] = h < 0 ? Sum{0} : h;
    }
    if constexpr (drops) {
      Sum const factor = keeps(j) ? scale : Sum{0};
      values[j] = rounded_product(values[j], factor);
      if constexpr (keeps_slope(activation)) slopes[j] = rounded_product(slopes[j], factor);
    }
  }
}

/// Rounds and writes a group to an aligned address, 16 bytes at once.
template <std::size_t count, class Sum, class Scalar>
__device__ void put_whole(Sum const (&values)[count], Scalar* to) noexcept {
  Scalar elements[count];
  LOCKSTEP_UNROLL
  for (int j = 0; j < static_cast<int>(count); ++j) elements[j] = static_cast<Scalar>(values[j]);
  LOCKSTEP_UNROLL
  for (int part = 0; part < static_cast<int>(sizeof elements / widest_access_bytes); ++part) {
    uint4 piece;
    std::memcpy(&piece, elements + part * elements_per_access<Scalar>, sizeof piece);
    __stwb(reinterpret_cast<uint4*>(to) + part, piece);
  }
}

/// Computes y = dropout(f(h)) and slope = dropout(f'(h)); `scale` is the factor of kept elements. h is in `slope`, or
/// in y if `slope` is null. A warp processes one row at a time, `activated_in_flight` groups of channels per lane, so
/// that it finds the row's sample once. Blocks with the same blockIdx.x process the same channels. If rows are whole
/// multiples of aligned groups, a lane reads and writes 16 bytes at once, and a group has one block of random bits.
template <class Scalar, Activation activation, bool drops>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, 3)
    activate_rows(RowDropout<CudaSpace> dropout, Accumulate<Scalar> scale, Index rows, Index width, Scalar* y,
                  Scalar* slope) {
  using Sum = Accumulate<Scalar>;
  constexpr int count = activated_together<Scalar, drops>, in_flight = activated_in_flight;
  using Access = VectorizedAccess<count>;
  Scalar const* const h = slope ? slope : y;
  bool const whole = width % count == 0 && reinterpret_cast<std::uintptr_t>(y) % widest_access_bytes == 0 &&
                     reinterpret_cast<std::uintptr_t>(h) % widest_access_bytes == 0;
  auto const mask = drops ? dropout.mask.resolved() : DropoutMask{};
  auto const first = (Index{blockIdx.x} * in_flight * warp + lane()) * count;
  for (auto row = Index{blockIdx.y} * warps_per_block + Index{threadIdx.x / warp}; row < rows;
       row += Index{gridDim.y} * warps_per_block) {
    Index position = 0, element = 0;
    if constexpr (drops) {
      auto const sample = dropout.layout.row_of(row);
      position = dropout.layout.positions.data[sample];
      element = (row - dropout.layout.start(sample)) * width;
    }
    auto const* const from = h + row * width;
    if (whole) {
      constexpr int parts = static_cast<int>(sizeof(Scalar) * count / widest_access_bytes);
      uint4 stored[std::size_t{in_flight}][std::size_t{parts}];
      LOCKSTEP_UNROLL
      for (int i = 0; i < in_flight; ++i)
        if (auto const at = first + Index{i} * warp * count; at < width) {
          LOCKSTEP_UNROLL
          for (int part = 0; part < parts; ++part) stored[i][part] = reinterpret_cast<uint4 const*>(from + at)[part];
        }
      std::array<Philox::Block, std::size_t{in_flight}> bits{};
      if constexpr (drops) {
        auto const block = static_cast<std::uint64_t>(element + first) / count;
        bits = Philox(mask.key)(static_cast<std::uint64_t>(position), std::array{block, block + warp});
      }
      LOCKSTEP_UNROLL
      for (int i = 0; i < in_flight; ++i)
        if (auto const at = first + Index{i} * warp * count; at < width) {
          typename Access::template Values<Scalar> elements;
          std::memcpy(static_cast<void*>(elements), stored[i], sizeof elements);
          typename Access::template Values<Sum> values, slopes;
          LOCKSTEP_UNROLL
          for (int j = 0; j < count; ++j) values[j] = static_cast<Sum>(elements[j]);
          activate<activation, drops>(
              values, slopes, scale, [&](int j) { return mask.keeps(bits[std::size_t(i)], static_cast<unsigned>(j)); });
          put_whole(values, y + row * width + at);
          if (keeps_slope(activation) && slope) put_whole(slopes, slope + row * width + at);
        }
    } else {
      MaskBits bits(mask, position);
      LOCKSTEP_UNROLL
      for (int i = 0; i < in_flight; ++i)
        if (auto const at = first + Index{i} * warp * count; at < width) {
          Access const access(at, width);
          typename Access::template Values<Sum> values, slopes;
          access.load_as(from, values);
          activate<activation, drops>(values, slopes, scale, [&](int j) { return bits.keeps(element + at + j); });
          access.put(values, y + row * width);
          if (keeps_slope(activation) && slope) access.put(slopes, slope + row * width);
        }
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Queues `activate_rows` for rows [rows, width].
template <class Scalar>
void queue_activation(memory::Stream<CudaSpace> stream, Activation activation, RowDropout<CudaSpace> const& dropout,
                      Index rows, Index width, Scalar* y, Scalar* slope) {
  auto const queue = [&]<bool drops>(std::bool_constant<drops>) {
    constexpr Index together = Index{warp} * activated_in_flight * activated_together<Scalar, drops>;
    constexpr Index max_blocks = 65535;
    dim3 const blocks(static_cast<unsigned>((width + together - 1) / together),
                      static_cast<unsigned>(std::min(max_blocks, (rows + warps_per_block - 1) / warps_per_block)));
    launch_grid("kernel::Linear::forward", stream, blocks, threads_per_block,
                activation == Activation::gelu        ? activate_rows<Scalar, Activation::gelu, drops>
                : activation == Activation::gelu_tanh ? activate_rows<Scalar, Activation::gelu_tanh, drops>
                : activation == Activation::silu      ? activate_rows<Scalar, Activation::silu, drops>
                : activation == Activation::relu      ? activate_rows<Scalar, Activation::relu, drops>
                                                      : activate_rows<Scalar, Activation::none, drops>,
                dropout, static_cast<Accumulate<Scalar>>(drops ? dropout.mask.scale() : 1), rows, width, y, slope);
  };
  if (dropout.mask.active())
    queue(std::true_type{});
  else
    queue(std::false_type{});
}

}}}  // namespace lockstep::kernel::detail
