// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <utility>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/dropped_row.cuh>
#include <lockstep/kernel/detail/product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/residual.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

enum class Centre {
  mean,  ///< LayerNorm: subtracts the mean
  zero,  ///< RMSNorm: does not
};

/// Statistics of each row for the backward pass: row r has element r * stride. A null mean means zero, and is not
/// written.
template <class T>
struct RowStatistics {
  T *mean, *reciprocal;
  Index stride;
};

/// Inputs of a norm's backward pass, and the gradients of the rows. `beside` is a further gradient of the sum, or null.
template <class T>
struct NormGradients {
  Index rows, width;
  T const *dy, *joined;
  RowStatistics<Accumulate<T> const> statistics;
  T const* beside;
  RowDropout<CudaSpace> dropout;
  Accumulate<T> const* weight;
  T* dx;
  Write dx_write;
  T* dresidual;
  Write dresidual_write;

  [[nodiscard]] __device__ Accumulate<T> mean(Index row) const noexcept {
    return statistics.mean ? statistics.mean[row * statistics.stride] : Accumulate<T>{0};
  }
  [[nodiscard]] __device__ Accumulate<T> reciprocal(Index row) const noexcept {
    return statistics.reciprocal[row * statistics.stride];
  }
};

/// Number of parameter gradients of a norm: weight and, with a mean, bias.
template <Centre centre>
inline constexpr std::size_t norm_parameters = centre == Centre::mean ? 2 : 1;

inline namespace LOCKSTEP_CUDA_ABI {

/// Normalises rows. One warp processes one row, a lane some adjacent elements at a time. A lane processes the same
/// columns in each pass, so it reads only its own writes.
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
          values[j] = static_cast<Sum>(rounded);  // normalise the value that is stored
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

/// Calls f(elements, group) for the groups of adjacent elements that a lane has of a row. Each of `groups` calls has
/// code of its own, so that the group's values stay in registers. 0 means any number, in a loop.
template <class Here, int groups, class F>
__device__ void for_groups(Index width, F const& f) {
  constexpr Index step = Index{warp} * Here::size;
  auto const first = lane() * Here::size;
  if constexpr (groups == 0) {
    for (auto at = first; at < width; at += step) f(Here(at, width), 0);
  } else {
    auto const one = [&](int group) {
      if (first + group * step < width) f(Here(first + group * step, width), group);
    };
    [&]<int... group>(std::integer_sequence<int, group...>) { (one(group), ...); }
    (std::make_integer_sequence<int, groups>{});
  }
}

/// Computes dx and dresidual. One warp processes one row, a lane some adjacent elements at a time. With `groups`, the
/// largest number of groups that a lane has of a row, a block processes a chunk of rows. It then also sums the
/// parameters' gradients, like sum_columns.
template <class T, Centre centre, int groups>
LOCKSTEP_CUDA_KERNEL void differentiate_rows(NormGradients<T> in, Index chunk_rows, Accumulate<T>* partial,
                                             ColumnTarget<Accumulate<T>> dweight, ColumnTarget<Accumulate<T>> dbias) {
  using Sum = Accumulate<T>;
  using Here = NeighboursOf<T>;
  constexpr bool sums = groups > 0;
  constexpr Index step = Index{warp} * Here::size;
  auto const width = in.width, chunk = Index{blockIdx.x};
  auto const begin = sums ? chunk * chunk_rows + Index{threadIdx.x} / warp : grid_warp();
  auto const end = sums ? min(in.rows, (chunk + 1) * chunk_rows) : in.rows;
  Sum of_columns[static_cast<std::size_t>(sums ? groups : 1)][Here::size][norm_parameters<centre>] = {};
  auto const count = static_cast<Sum>(width);
  NumbersOf<T> gradients, inputs, others;
  for (auto row = begin; row < end; row += sums ? warps_per_block : grid_warps()) {
    auto const at = row * width;
    DroppedRow<T> of_row(in.dropout, row, width);
    auto const mean = in.mean(row), reciprocal = in.reciprocal(row);
    auto const load = [&](Here const& here) {  // dy, the weight, and the normalised values
      here.load_as(in.dy + at, gradients);
      here.load(in.weight, others);
      here.load_as(in.joined + at, inputs);
      for (auto& input : inputs) input = (input - mean) * reciprocal;
    };
    Sum gradient = 0, projection = 0;
    for_groups<Here, groups>(width, [&](Here const& here, int group) {
      load(here);
      for (int j = 0; j < Here::size; ++j) {
        if constexpr (sums) {
          of_columns[group][j][0] += gradients[j] * inputs[j];
          if constexpr (centre == Centre::mean) of_columns[group][j][1] += gradients[j];
        }
        gradients[j] *= others[j];
        gradient += gradients[j];
        projection += gradients[j] * inputs[j];
      }
    });
    gradient = centre == Centre::mean ? warp_sum(gradient) / count : Sum{0};
    projection = warp_sum(projection) / count;
    for (auto first = lane() * Here::size; first < width; first += step) {
      Here const here(first, width);
      load(here);
      for (int j = 0; j < here.size; ++j)
        gradients[j] = reciprocal * (gradients[j] * others[j] - gradient - inputs[j] * projection);
      if (in.beside) {
        here.load_as(in.beside + at, others);
        for (int j = 0; j < here.size; ++j) gradients[j] += others[j];
      }
      if (in.dx) here.put(gradients, in.dx + at, in.dx_write);
      if (!in.dresidual) continue;
      for (int j = 0; j < here.size; ++j) gradients[j] = product(gradients[j], of_row.factor(first + j));
      here.put(gradients, in.dresidual + at, in.dresidual_write);
    }
  }
  if constexpr (sums) {
    auto const put = [&](int group) {
      for (int j = 0; j < Here::size && group * step < width; ++j)
        put_sums_of_chunk(of_columns[group][j], chunk, Index{gridDim.x}, group * step + lane() * Here::size + j, width,
                          partial, dweight, dbias);
    };
    [&]<int... group>(std::integer_sequence<int, group...>) { (put(group), ...); }
    (std::make_integer_sequence<int, groups>{});
  }
}

/// Term of the parameters' sums over rows.
template <class T, Centre centre>
struct OfNormalized {
  NormGradients<T> in;

  __device__ void operator()(Index row, Index column, Accumulate<T> (&sums)[norm_parameters<centre>]) const {
    using Sum = Accumulate<T>;
    auto const at = row * in.width + column;
    auto const d = static_cast<Sum>(in.dy[at]);
    sums[0] += d * ((static_cast<Sum>(in.joined[at]) - in.mean(row)) * in.reciprocal(row));
    if constexpr (centre == Centre::mean) sums[1] += d;
  }
};

}  // namespace LOCKSTEP_CUDA_ABI

/// Computes all gradients of a norm. If a warp's registers hold its sums over rows, one kernel computes the gradients
/// of the rows and the parameters. A row is then read from memory once, and from the cache the second time.
/// @shape partial [norm_parameters<centre> * column_partials(rows, width)], overwritten
template <Centre centre, class T>
void differentiate_norm(char const* name, memory::Stream<CudaSpace> stream, NormGradients<T> const& in,
                        Accumulate<T>* partial, ColumnTarget<Accumulate<T>> dweight,
                        ColumnTarget<Accumulate<T>> dbias = {}) {
  using Sum = Accumulate<T>;
  constexpr auto parameters = norm_parameters<centre>;
  auto const chunks = column_chunks(in.rows), chunk_rows = column_chunk(in.rows);
  auto const at_once = [&](void (*kernel)(NormGradients<T>, Index, Sum*, ColumnTarget<Sum>, ColumnTarget<Sum>)) {
    launch_grid(name, stream, static_cast<unsigned>(chunks), threads_per_block, kernel, in, chunk_rows,
                chunks > 1 ? partial : nullptr, dweight, dbias);
    finish_columns<Sum, parameters>(name, stream, chunks, in.width, partial, dweight, dbias);
  };
  constexpr Index step = Index{warp} * most_neighbours<T>;
  if constexpr (sizeof(Sum) < sizeof(double)) {
    if (in.width <= step) return at_once(differentiate_rows<T, centre, 1>);
    if (in.width <= 4 * step) return at_once(differentiate_rows<T, centre, 4>);
    if constexpr (sizeof(T) == sizeof(float))
      if (in.width <= 8 * step) return at_once(differentiate_rows<T, centre, 8>);
  }
  // Parameters first: dx may overwrite dy.
  sum_columns<Sum, parameters>(name, stream, in.rows, in.width, OfNormalized<T, centre>{in}, partial, dweight, dbias);
  launch(name, stream, in.rows * warp, differentiate_rows<T, centre, 0>, in, chunk_rows, static_cast<Sum*>(nullptr),
         dweight, dbias);
}

}}}  // namespace lockstep::kernel::detail
