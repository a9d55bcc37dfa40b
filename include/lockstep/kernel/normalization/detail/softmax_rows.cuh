// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/cooperative_group.cuh>
#include <lockstep/kernel/normalization/detail/softmax_rows.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// CUDA's functions, for the rules of softmax_rows.hpp.
struct CudaFunctions {
  template <class Scalar>
  [[nodiscard]] static constexpr Scalar exp(Scalar x) noexcept {
    return std::exp(x);
  }
  template <class Scalar>
  [[nodiscard]] static constexpr Scalar log(Scalar x) noexcept {
    return std::log(x);
  }
};

/// Computes y by a rule from the exponentials of each row of x. One warp processes one row.
template <class Rule, class Scalar>
LOCKSTEP_CUDA_KERNEL void softmax_by_warp(Index rows, Index width, Scalar const* x, Scalar* y) {
  using Sum = Accumulate<Scalar>;
  for (auto row = CooperativeWarp::first(); row < rows; row += CooperativeWarp::count()) {
    auto const* const from = x + row * width;
    Sum maximum = -std::numeric_limits<Sum>::infinity(), total = 0;
    for (auto c = CooperativeWarp::thread_rank(); c < width; c += CooperativeWarp::size) {
      auto const here = static_cast<Sum>(from[c]);
      maximum = here > maximum || here != here ? here : maximum;
    }
    maximum = CooperativeWarp::largest(maximum);
    for (auto c = CooperativeWarp::thread_rank(); c < width; c += CooperativeWarp::size)
      total += std::exp(static_cast<Sum>(from[c]) - maximum);
    Sum const normalizer = Rule::template normalizer<CudaFunctions>(CooperativeWarp::sum(total));
    for (auto c = CooperativeWarp::thread_rank(); c < width; c += CooperativeWarp::size) {
      Sum const shifted = static_cast<Sum>(from[c]) - maximum;
      y[row * width + c] = static_cast<Scalar>(Rule::result(shifted, std::exp(shifted), normalizer));
    }
  }
}

/// Computes dx by a rule from dy and y, or adds it to dx. One warp processes one row.
template <class Rule, class Scalar>
LOCKSTEP_CUDA_KERNEL void differentiate_softmax_by_warp(Index rows, Index width, Scalar const* dy, Scalar const* y,
                                                        Scalar* dx, Write write) {
  using Sum = Accumulate<Scalar>;
  for (auto row = CooperativeWarp::first(); row < rows; row += CooperativeWarp::count()) {
    Sum total = 0;
    for (auto c = CooperativeWarp::thread_rank(); c < width; c += CooperativeWarp::size) {
      auto const at = row * width + c;
      if constexpr (Rule::weights_by_result) {
        total += static_cast<Sum>(y[at]) * static_cast<Sum>(dy[at]);
      } else {
        total += static_cast<Sum>(dy[at]);
      }
    }
    total = CooperativeWarp::sum(total);
    for (auto c = CooperativeWarp::thread_rank(); c < width; c += CooperativeWarp::size) {
      auto const at = row * width + c;
      Sum const here = Rule::template gradient<CudaFunctions>(static_cast<Sum>(y[at]), static_cast<Sum>(dy[at]), total);
      dx[at] = static_cast<Scalar>(write == Write::overwrite ? here : static_cast<Sum>(dx[at]) + here);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
