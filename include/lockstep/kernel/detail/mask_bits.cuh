// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/neighbours.cuh>
#include <lockstep/kernel/dropout_mask.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// How many groups of neighbours that share a block of random bits a row has.
[[nodiscard]] constexpr Index mask_groups(Index width) noexcept { return (width + 7) / 8; }
/// The same for neighbours of any number.
template <class Here>
[[nodiscard]] constexpr Index groups_of(Index width) noexcept {
  return (width + Here::size - 1) / Here::size;
}

inline namespace LOCKSTEP_CUDA_ABI {

/// Neighbours that share a block of random bits.
using MaskedNeighbours = Neighbours<8>;

/// A DropoutMask as one thread evaluates it: element after element, each block of random bits made once.
class MaskBits {
 public:
  __device__ MaskBits(DropoutMask mask, Index position) noexcept
      : mask_(mask.resolved()), position_(static_cast<std::uint64_t>(position)) {}

  [[nodiscard]] __device__ bool keeps(Index element) noexcept {
    auto const e = static_cast<std::uint64_t>(element);
    if (e / 8 != block_) {
      block_ = e / 8;
      words_ = Philox(mask_.key)(position_, block_);
    }
    return mask_.keeps(words_, static_cast<unsigned>(e % 8));
  }

 private:
  DropoutMask mask_;
  std::uint64_t position_;
  std::uint64_t block_ = ~std::uint64_t{0};
  Philox::Block words_{};
};

}  // namespace LOCKSTEP_CUDA_ABI

/// f(the neighbours that a thread takes): those of a block of random bits where there is dropout; otherwise as many as
/// one access writes, so that those of a warp lie side by side.
template <class T, class F>
void with_neighbours(DropoutMask const& mask, F const& f) {
  if (mask.active())
    f(std::type_identity<MaskedNeighbours>{});
  else
    f(std::type_identity<NeighboursOf<T>>{});
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
