// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/dropped_row.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/residual.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

enum class Centre {
  mean,  ///< LayerNorm: the mean is taken away
  zero,  ///< RMSNorm: it is not
};

/// What backward needs to know of each row: of row r the elements r * stride. A null mean is zero, and not written.
template <class T>
struct RowStatistics {
  T *mean, *reciprocal;
  Index stride;
};

inline namespace LOCKSTEP_CUDA_ABI {

/// A warp takes a row; a lane sees the same columns in each pass, so it reads only what it wrote itself.
template <class T, Centre centre>
LOCKSTEP_CUDA_KERNEL void normalize_rows(Index rows, Index width, T const* x, Residual<T, CudaSpace> residual,
                                         Accumulate<T> const* weight, Accumulate<T> const* bias, Accumulate<T> epsilon,
                                         T* joined, RowStatistics<Accumulate<T>> statistics, T* y) {
  using Sum = Accumulate<T>;
  auto const count = static_cast<Sum>(width);
  for (auto row = grid_warp(); row < rows; row += grid_warps()) {
    auto const at = row * width;
    T const* from = x + at;
    Sum sum = 0;
    if (residual.value.data) {
      auto* const to = (joined ? joined : y) + at;
      DroppedRow<T> const dropout(residual.dropout, row, width);
      for (auto c = lane(); c < width; c += warp) {
        auto const value =
            static_cast<Sum>(x[at + c]) + product(static_cast<Sum>(residual.value.data[at + c]), dropout.factor(c));
        to[c] = static_cast<T>(value);
        sum += static_cast<Sum>(to[c]);  // what is kept is what is normalised
      }
      from = to;
    } else {
      for (auto c = lane(); c < width; c += warp) sum += static_cast<Sum>(from[c]);
    }
    Sum const mean = centre == Centre::mean ? warp_sum(sum) / count : Sum{0};
    Sum squares = 0;
    for (auto c = lane(); c < width; c += warp) {
      Sum const difference = static_cast<Sum>(from[c]) - mean;
      squares += difference * difference;
    }
    Sum const reciprocal = 1 / std::sqrt(warp_sum(squares) / count + epsilon);
    if (lane() == 0) {
      if (statistics.mean) statistics.mean[row * statistics.stride] = mean;
      if (statistics.reciprocal) statistics.reciprocal[row * statistics.stride] = reciprocal;
    }
    for (auto c = lane(); c < width; c += warp) {
      Sum const value = (static_cast<Sum>(from[c]) - mean) * reciprocal;
      auto const scaled = weight[c] * value;
      y[at + c] = static_cast<T>(bias ? scaled + bias[c] : scaled);
    }
  }
}

/// dx and dresidual; a warp takes a row. `beside` is what else flows into the sum, or null.
template <class T, Centre centre>
LOCKSTEP_CUDA_KERNEL void differentiate_rows(Index rows, Index width, T const* dy, T const* joined,
                                             RowStatistics<Accumulate<T> const> statistics, T const* beside,
                                             RowDropout<CudaSpace> dropout, Accumulate<T> const* weight, T* dx,
                                             Write dx_write, T* dresidual, Write dresidual_write) {
  using Sum = Accumulate<T>;
  auto const count = static_cast<Sum>(width);
  for (auto row = grid_warp(); row < rows; row += grid_warps()) {
    auto const at = row * width;
    DroppedRow<T> const of_row(dropout, row, width);
    auto const mean = statistics.mean ? statistics.mean[row * statistics.stride] : Sum{0};
    auto const reciprocal = statistics.reciprocal[row * statistics.stride];
    Sum gradient = 0, projection = 0;
    for (auto c = lane(); c < width; c += warp) {
      auto const g = static_cast<Sum>(dy[at + c]) * weight[c];
      gradient += g;
      projection += g * ((static_cast<Sum>(joined[at + c]) - mean) * reciprocal);
    }
    gradient = centre == Centre::mean ? warp_sum(gradient) / count : Sum{0};
    projection = warp_sum(projection) / count;
    for (auto c = lane(); c < width; c += warp) {
      auto const g = static_cast<Sum>(dy[at + c]) * weight[c];
      auto const normalized = (static_cast<Sum>(joined[at + c]) - mean) * reciprocal;
      Sum ds = reciprocal * (g - gradient - normalized * projection);
      if (beside) ds += static_cast<Sum>(beside[at + c]);
      if (dx) dx[at + c] = static_cast<T>(dx_write == Write::add ? static_cast<Sum>(dx[at + c]) + ds : ds);
      if (!dresidual) continue;
      auto const dropped = product(ds, of_row.factor(c));
      dresidual[at + c] =
          static_cast<T>(dresidual_write == Write::add ? static_cast<Sum>(dresidual[at + c]) + dropped : dropped);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
