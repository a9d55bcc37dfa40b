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

/// A warp takes a row, a lane some neighbours at a time; it sees the same columns in each pass, so it reads only what
/// it wrote itself.
template <class T, Centre centre>
LOCKSTEP_CUDA_KERNEL void normalize_rows(Index rows, Index width, T const* x, Residual<T, CudaSpace> residual,
                                         Accumulate<T> const* weight, Accumulate<T> const* bias, Accumulate<T> epsilon,
                                         T* joined, RowStatistics<Accumulate<T>> statistics, T* y) {
  using Sum = Accumulate<T>;
  using Here = NeighboursOf<T>;
  constexpr Index step = Index{warp} * Here::size;
  auto const count = static_cast<Sum>(width);
  NumbersOf<T> values, others;
  for (auto row = grid_warp(); row < rows; row += grid_warps()) {
    auto const at = row * width;
    T const* from = x + at;
    Sum sum = 0;
    if (residual.value.data) {
      auto* const to = (joined ? joined : y) + at;
      DroppedRow<T> dropout(residual.dropout, row, width);
      for (auto first = lane() * Here::size; first < width; first += step) {
        Here const here(first, width);
        here.load_as(from, values);
        here.load_as(residual.value.data + at, others);
        for (int j = 0; j < here.size; ++j) {
          auto const rounded = static_cast<T>(values[j] + product(others[j], dropout.factor(first + j)));
          values[j] = static_cast<Sum>(rounded);  // what is kept is what is normalised
          sum += values[j];
        }
        here.put(values, to);
      }
      from = to;
    } else if (centre == Centre::mean) {
      for (auto first = lane() * Here::size; first < width; first += step) {
        Here(first, width).load_as(from, values);
        for (auto const value : values) sum += value;
      }
    }
    Sum const mean = centre == Centre::mean ? warp_sum(sum) / count : Sum{0};
    Sum squares = 0;
    for (auto first = lane() * Here::size; first < width; first += step) {
      Here const here(first, width);
      here.load_as(from, values);
      for (int j = 0; j < here.size; ++j)
        if (here.has(j)) squares += (values[j] - mean) * (values[j] - mean);
    }
    Sum const reciprocal = 1 / std::sqrt(warp_sum(squares) / count + epsilon);
    if (lane() == 0) {
      if (statistics.mean) statistics.mean[row * statistics.stride] = mean;
      if (statistics.reciprocal) statistics.reciprocal[row * statistics.stride] = reciprocal;
    }
    for (auto first = lane() * Here::size; first < width; first += step) {
      Here const here(first, width);
      here.load_as(from, values);
      here.load(weight, others);
      for (int j = 0; j < here.size; ++j) values[j] = others[j] * ((values[j] - mean) * reciprocal);
      if (bias) {
        here.load(bias, others);
        for (int j = 0; j < here.size; ++j) values[j] += others[j];
      }
      here.put(values, y + at);
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
  using Here = NeighboursOf<T>;
  constexpr Index step = Index{warp} * Here::size;
  auto const count = static_cast<Sum>(width);
  NumbersOf<T> gradients, inputs, others;
  for (auto row = grid_warp(); row < rows; row += grid_warps()) {
    auto const at = row * width;
    DroppedRow<T> of_row(dropout, row, width);
    auto const mean = statistics.mean ? statistics.mean[row * statistics.stride] : Sum{0};
    auto const reciprocal = statistics.reciprocal[row * statistics.stride];
    auto const load = [&](Here const& here) {  // dy times the weight, and what was normalised
      here.load_as(dy + at, gradients);
      here.load(weight, others);
      here.load_as(joined + at, inputs);
      for (int j = 0; j < here.size; ++j) {
        gradients[j] *= others[j];
        inputs[j] = (inputs[j] - mean) * reciprocal;
      }
    };
    Sum gradient = 0, projection = 0;
    for (auto first = lane() * Here::size; first < width; first += step) {
      load(Here(first, width));
      for (int j = 0; j < Here::size; ++j) {
        gradient += gradients[j];
        projection += gradients[j] * inputs[j];
      }
    }
    gradient = centre == Centre::mean ? warp_sum(gradient) / count : Sum{0};
    projection = warp_sum(projection) / count;
    for (auto first = lane() * Here::size; first < width; first += step) {
      Here const here(first, width);
      load(here);
      for (int j = 0; j < here.size; ++j)
        gradients[j] = reciprocal * (gradients[j] - gradient - inputs[j] * projection);
      if (beside) {
        here.load_as(beside + at, others);
        for (int j = 0; j < here.size; ++j) gradients[j] += others[j];
      }
      if (dx) here.put(gradients, dx + at, dx_write);
      if (!dresidual) continue;
      for (int j = 0; j < here.size; ++j) gradients[j] = product(gradients[j], of_row.factor(first + j));
      here.put(gradients, dresidual + at, dresidual_write);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
