// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/dropout_mask.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns the number of element groups in a row that share a block of random bits: 8 elements each.
[[nodiscard]] constexpr Index mask_groups(Index width) noexcept { return (width + 7) / 8; }
/// Returns the number of groups in a row for a vectorized access of type `Access`.
template <class Access>
[[nodiscard]] constexpr Index groups_of(Index width) noexcept {
  return (width + Access::size - 1) / Access::size;
}

inline namespace LOCKSTEP_CUDA_ABI {

/// Adjacent elements that share a block of random bits.
using DropoutAccess = VectorizedAccess<8>;

/// A DropoutMask evaluated by one thread, element by element. Computes each block of random bits once.
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

/// Calls f(the type of a thread's vectorized access). With dropout, a thread processes the elements of one block of
/// random bits. Otherwise it processes as many as one access writes, so that a warp's elements are contiguous.
template <class Scalar, class Function>
void with_access(DropoutMask const& mask, Function const& f) {
  if (mask.active())
    f(std::type_identity<DropoutAccess>{});
  else
    f(std::type_identity<WidestAccess<Scalar>>{});
}

}}}  // namespace lockstep::kernel::detail
