// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/dropped_row.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/detail/warp.cuh>
#include <lockstep/kernel/normalization/detail/row_partition.cuh>
#include <lockstep/kernel/normalization/residual.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

enum class Centering {
  mean,  ///< LayerNorm: subtracts the mean
  none,  ///< RMSNorm: does not
};

/// Statistics of each row for the backward pass: row r has element r * stride. A null mean means zero, and is not
/// written.
template <class Scalar>
struct RowStatistics {
  Scalar *mean, *reciprocal;
  Index stride;
};

/// Inputs of a norm's backward pass, and the gradients of the rows. `other_gradient` is a further gradient of the sum,
/// or null.
template <class Scalar>
struct NormGradients {
  Index rows, width;
  Scalar const *dy, *norm_input;
  RowStatistics<Accumulate<Scalar> const> statistics;
  Scalar const* other_gradient;
  RowDropout<CudaSpace> dropout;
  Accumulate<Scalar> scale;  ///< of elements that dropout keeps
  Accumulate<Scalar> const* weight;
  Scalar* dx;
  Write dx_write;
  Scalar* dresidual;
  Write dresidual_write;

  [[nodiscard]] __device__ Accumulate<Scalar> mean(Index row) const noexcept {
    return statistics.mean ? statistics.mean[row * statistics.stride] : Accumulate<Scalar>{0};
  }
  [[nodiscard]] __device__ Accumulate<Scalar> reciprocal(Index row) const noexcept {
    return statistics.reciprocal[row * statistics.stride];
  }
};

/// Number of parameter gradients of a norm: weight and, with a mean, bias.
template <Centering centre>
inline constexpr std::size_t norm_parameters = centre == Centering::mean ? 2 : 1;

/// Groups of 16 bytes that a thread holds of a row. The backward pass also holds the sums of its columns: 128 registers
/// suffice for all of them.
template <class Scalar>
inline constexpr int normalized_groups = held_groups<Scalar>(32);
template <class Scalar>
inline constexpr int differentiated_groups = held_groups<Scalar>(sizeof(Scalar) == 2 ? 24 : 16);

inline namespace LOCKSTEP_CUDA_ABI {

/// Normalizes rows. A cooperative group processes one row, which it reads once and keeps in registers.
template <class Scalar, Centering centre, bool wide>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(RowPartition::max_threads, wide ? sizeof(Scalar) == 2 ? 3 : 2 : 1)
    normalize_rows(RowPartition partition, Index rows, Scalar const* x, Residual<Scalar, CudaSpace> residual,
                   Accumulate<Scalar> scale, Accumulate<Scalar> const* weight, Accumulate<Scalar> const* bias,
                   Accumulate<Scalar> epsilon, Scalar* norm_input, RowStatistics<Accumulate<Scalar>> statistics,
                   Scalar* y) {
  using Sum = Accumulate<Scalar>;
  using Part = RowPart<Scalar, normalized_groups<Scalar>, wide>;
  auto const mask = residual.dropout.mask.resolved();
  Index const width = partition.width;
  auto const count = static_cast<Sum>(partition.width);
  auto const group = partition.group(), before = partition.group_of_warp();
  // All groups of a warp iterate equally often.
  for (auto row = Index{blockIdx.x} * partition.rows_per_block() + group; row - before < rows;
       row += Index{gridDim.x} * partition.rows_per_block()) {
    Part const part(partition, row < rows);
    auto const at = row * width;
    typename Part::Held held;
    typename Part::Numbers values, others;
    part.load(x + at, held);
    Sum sums[1] = {};
    if (residual.value.data) {
      typename Part::Held added;
      part.load(residual.value.data + at, added);
      DroppedRow<Scalar> const dropout(residual.dropout, mask, scale, min(row, rows - 1), width);
      for_constants<Part::groups>([&](auto g) {
        if (!part.has(g)) return;
        Part::numbers(held.group[g], values);
        Part::numbers(added.group[g], others);
        dropout.apply(part.first(g), others);
        for (int j = 0; j < Part::size; ++j) values[j] = rounded_sum(values[j], others[j]);
        part.hold(g, values, held.group[g],
                  norm_input ? norm_input + at : nullptr);  // normalize the value that is stored
      });
    }
    Sum mean = 0;
    if constexpr (centre == Centering::mean) {
      for_constants<Part::groups>([&](auto g) {
        Part::numbers(held.group[g], values);
        for (auto const value : values) sums[0] += value;
      });
      sum_over_group(partition.lanes, sums);
      mean = sums[0] / count;
      sums[0] = 0;
    }
    for_constants<Part::groups>([&](auto g) {
      if (!part.has(g)) return;
      Part::numbers(held.group[g], values);
      for (int j = 0; j < Part::size; ++j)
        if (part.has(g, j)) sums[0] += (values[j] - mean) * (values[j] - mean);
    });
    sum_over_group(partition.lanes, sums);
    Sum const reciprocal = 1 / std::sqrt(sums[0] / count + epsilon);
    if (part.has(0) && part.first(0) == 0) {
      if (statistics.mean) statistics.mean[row * statistics.stride] = mean;
      if (statistics.reciprocal) statistics.reciprocal[row * statistics.stride] = reciprocal;
    }
    for_constants<Part::groups>([&](auto g) {
      if (!part.has(g)) return;
      Part::numbers(held.group[g], values);
      part.factors(g, weight, others);
      for (int j = 0; j < Part::size; ++j) values[j] = others[j] * ((values[j] - mean) * reciprocal);
      if (bias) {
        part.factors(g, bias, others);
        for (int j = 0; j < Part::size; ++j) values[j] += others[j];
      }
      part.put(g, values, y + at, Write::overwrite);
    });
  }
}

/// Writes the sums of columns over a block's chunk of rows. Adds a warp's cooperative groups in a fixed tree, then the
/// warps in order. Sums of chunk c for target t go to row t * chunks + c of `partial`, or to the targets if it is null.
template <class Scalar, std::size_t groups, std::size_t targets, class Sum>
__device__ void put_sums_of_groups(RowPartition const& partition,
                                   Sum (&sums)[groups][elements_per_access<Scalar>][targets], Index chunk, Index chunks,
                                   Sum* partial, ColumnTarget<Sum> first, ColumnTarget<Sum> second) noexcept {
  constexpr int size = elements_per_access<Scalar>,
                of_warp = static_cast<int>(warp) * size;  // columns of a warp's group at most
  __shared__ ColumnsOfWarp<Sum, size> shared[targets][warps_per_block];
  auto const columns = partition.lanes * size;
  auto const own = static_cast<int>(lane()) & (partition.lanes - 1);
  for_constants<static_cast<int>(groups)>([&](auto g) {
    if (g * columns >= partition.width) return;
    for (int j = 0; j < size; ++j)
      for (std::size_t t = 0; t < targets; ++t) {
        auto& sum = sums[g][j][t];
        for (int distance = partition.lanes; distance < static_cast<int>(warp); distance *= 2)
          sum += __shfl_xor_sync(~0u, sum, static_cast<unsigned>(distance));
        if (static_cast<int>(lane()) < partition.lanes) shared[t][threadIdx.x / warp].of(own, j) = sum;
      }
    __syncthreads();
    for (std::size_t t = 0; t < targets; ++t)
      for (auto c = static_cast<int>(threadIdx.x); c < columns; c += static_cast<int>(blockDim.x)) {
        Index const column = g * columns + c;
        if (column >= partition.width) break;
        Sum sum = shared[t][c / of_warp].column(c % of_warp);  // if a group is a block: its warps have other columns
        if (partition.lanes <= static_cast<int>(warp))
          for (unsigned w = 1; w < blockDim.x / warp; ++w) sum += shared[t][w].column(c);
        auto const target = t == 0 ? first : second;
        auto* const to = partial ? partial + (static_cast<Index>(t) * chunks + chunk) * partition.width : target.data;
        to[column] = !partial && target.write == Write::add ? to[column] + sum : sum;
      }
    __syncthreads();  // the next group overwrites the shared values
  });
}

/// Sums of each thread's columns in shared memory, for a kernel whose registers hold other sums. A thread accesses its
/// own 16 bytes at a time, and a warp contiguous ones.
template <class Scalar, int groups>
struct SharedSums {
  using Sum = Accumulate<Scalar>;
  static constexpr int size = elements_per_access<Scalar>, of_part = elements_per_access<Sum>, parts = size / of_part;
  uint4 sums[static_cast<std::size_t>(groups * parts)][RowPartition::max_threads];

  __device__ void clear() noexcept {
    for (auto& part : sums) part[threadIdx.x] = {};
  }
  __device__ void add(int group, Sum const (&x)[static_cast<std::size_t>(size)]) noexcept {
    for (int part = 0; part < parts; ++part) {
      auto& stored = sums[group * parts + part][threadIdx.x];
      Sum of_thread[static_cast<std::size_t>(of_part)];
      std::memcpy(of_thread, &stored, sizeof of_thread);
      for (int j = 0; j < of_part; ++j) of_thread[j] += x[part * of_part + j];
      std::memcpy(&stored, of_thread, sizeof of_thread);
    }
  }
  /// Writes the sums of columns over the block's threads, in their order, after all threads have added theirs.
  __device__ void put(RowPartition const& partition, Sum* to, Write write) const noexcept {
    for (auto column = static_cast<int>(threadIdx.x); column < partition.width;
         column += static_cast<int>(blockDim.x)) {
      auto const access = column / size, j = column % size;
      auto const* const part = sums[(access >> partition.lane_bits) * parts + j / of_part];
      Sum sum = 0;
      for (auto thread = access & (partition.lanes - 1); thread < static_cast<int>(blockDim.x);
           thread += partition.lanes)
        sum += reinterpret_cast<Sum const*>(part + thread)[j % of_part];
      to[column] = write == Write::add ? to[column] + sum : sum;
    }
  }
};

/// Computes dx and dresidual, and the parameters' gradients over each block's chunk of rows. A cooperative group
/// processes one row, which it reads once and keeps in registers. Also sums the columns of dresidual, if the target is
/// not null.
template <class Scalar, Centering centre, bool wide>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(RowPartition::max_threads, wide ? 2 : 1)
    differentiate_rows(RowPartition partition, NormGradients<Scalar> in, Index chunk_rows, Accumulate<Scalar>* partial,
                       ColumnTarget<Accumulate<Scalar>> dweight, ColumnTarget<Accumulate<Scalar>> dbias,
                       ColumnTarget<Accumulate<Scalar>> dresidual_sums) {
  using Sum = Accumulate<Scalar>;
  using Part = RowPart<Scalar, differentiated_groups<Scalar>, wide>;
  Index const width = partition.width, chunk = blockIdx.x;
  auto const count = static_cast<Sum>(partition.width);
  auto const group = partition.group(), before = partition.group_of_warp();
  auto const end = min(in.rows, (chunk + 1) * chunk_rows);
  auto const mask = in.dropout.mask.resolved();
  __shared__ SharedSums<Scalar, Part::groups> of_dresidual;
  if (dresidual_sums.data) of_dresidual.clear();
  Sum of_columns[static_cast<std::size_t>(Part::groups)][Part::size][norm_parameters<centre>] = {};
  for (auto row = chunk * chunk_rows + group; row - before < end; row += partition.rows_per_block()) {
    bool const active = row < end;
    Part const part(partition, active);
    auto const at = row * width;
    typename Part::Held dy, norm_input;
    typename Part::Numbers gradients, inputs, others;
    part.load(in.dy + at, dy);
    part.load(in.norm_input + at, norm_input);
    auto const mean = active ? in.mean(row) : Sum{0}, reciprocal = active ? in.reciprocal(row) : Sum{0};
    DroppedRow<Scalar> const dropout(in.dropout, mask, in.scale, min(row, in.rows - 1), width);
    auto const unpack = [&](auto g) {  // dy, the weight, and the normalized values
      Part::numbers(dy.group[g], gradients);
      Part::numbers(norm_input.group[g], inputs);
      part.factors(g, in.weight, others);
      for (auto& input : inputs) input = (input - mean) * reciprocal;
    };
    Sum sums[2] = {};  // of the gradients, and of their products with the normalized values
    for_constants<Part::groups>([&](auto g) {
      if (!part.has(g)) return;
      unpack(g);
      for (int j = 0; j < Part::size; ++j) {
        of_columns[g][j][0] += gradients[j] * inputs[j];
        if constexpr (centre == Centering::mean) of_columns[g][j][1] += gradients[j];
        gradients[j] *= others[j];
        sums[0] += gradients[j];
        sums[1] += gradients[j] * inputs[j];
      }
    });
    sum_over_group(partition.lanes, sums);
    auto const gradient = centre == Centering::mean ? sums[0] / count : Sum{0}, projection = sums[1] / count;
    for_constants<Part::groups>([&](auto g) {
      if (!part.has(g)) return;
      unpack(g);
      for (int j = 0; j < Part::size; ++j)
        gradients[j] = reciprocal * (gradients[j] * others[j] - gradient - inputs[j] * projection);
      if (in.other_gradient) {
        part.load_numbers(g, in.other_gradient + at, others);
        for (int j = 0; j < Part::size; ++j) gradients[j] += others[j];
      }
      if (in.dx) part.put(g, gradients, in.dx + at, in.dx_write);
      if (!in.dresidual) return;
      dropout.apply(part.first(g), gradients);
      if (!dresidual_sums.data) return part.put(g, gradients, in.dresidual + at, in.dresidual_write);
      uint4 stored;
      part.hold(g, gradients, stored, in.dresidual + at);
      of_dresidual.add(g, gradients);
    });
  }
  auto const chunks = Index{gridDim.x};
  put_sums_of_groups<Scalar>(partition, of_columns, chunk, chunks, partial, dweight, dbias);  // all threads have added
  if (!dresidual_sums.data) return;
  auto* const to = partial ? partial + (Index{norm_parameters<centre>} * chunks + chunk) * width : dresidual_sums.data;
  of_dresidual.put(partition, to, partial ? Write::overwrite : dresidual_sums.write);
}

/// Computes dx and dresidual of rows that are too long for registers. One warp processes one row, a lane some adjacent
/// elements at a time.
template <class Scalar, Centering centre>
LOCKSTEP_CUDA_KERNEL void differentiate_long_rows(NormGradients<Scalar> in) {
  using Sum = Accumulate<Scalar>;
  using Access = WidestAccess<Scalar>;
  constexpr Index step = Index{warp} * Access::size;
  auto const width = in.width;
  auto const count = static_cast<Sum>(width);
  auto const mask = in.dropout.mask.resolved();
  AccessNumbers<Scalar> gradients, inputs, others;
  for (auto row = grid_warp(); row < in.rows; row += grid_warps()) {
    auto const at = row * width;
    DroppedRow<Scalar> const dropout(in.dropout, mask, in.scale, row, width);
    auto const mean = in.mean(row), reciprocal = in.reciprocal(row);
    auto const load = [&](Access const& access) {  // dy, the weight, and the normalized values
      access.load_as(in.dy + at, gradients);
      access.load(in.weight, others);
      access.load_as(in.norm_input + at, inputs);
      for (auto& input : inputs) input = (input - mean) * reciprocal;
    };
    Sum gradient = 0, projection = 0;
    for (auto first = lane() * Access::size; first < width; first += step) {
      load(Access(first, width));
      for (int j = 0; j < Access::size; ++j) {
        gradients[j] *= others[j];
        gradient += gradients[j];
        projection += gradients[j] * inputs[j];
      }
    }
    gradient = centre == Centering::mean ? warp_sum(gradient) / count : Sum{0};
    projection = warp_sum(projection) / count;
    for (auto first = lane() * Access::size; first < width; first += step) {
      Access const access(first, width);
      load(access);
      for (int j = 0; j < access.size; ++j)
        gradients[j] = reciprocal * (gradients[j] * others[j] - gradient - inputs[j] * projection);
      if (in.other_gradient) {
        access.load_as(in.other_gradient + at, others);
        for (int j = 0; j < access.size; ++j) gradients[j] += others[j];
      }
      if (in.dx) access.put(gradients, in.dx + at, in.dx_write);
      if (!in.dresidual) continue;
      dropout.apply(first, gradients);
      access.put(gradients, in.dresidual + at, in.dresidual_write);
    }
  }
}

/// Normalizes rows that are too long for registers. One warp processes one row, a lane some adjacent elements at a
/// time. A lane processes the same columns in each pass, so it reads only its own writes.
template <class Scalar, Centering centre>
LOCKSTEP_CUDA_KERNEL void normalize_long_rows(Index rows, Index width, Scalar const* x,
                                              Residual<Scalar, CudaSpace> residual, Accumulate<Scalar> scale,
                                              Accumulate<Scalar> const* weight, Accumulate<Scalar> const* bias,
                                              Accumulate<Scalar> epsilon, Scalar* norm_input,
                                              RowStatistics<Accumulate<Scalar>> statistics, Scalar* y) {
  using Sum = Accumulate<Scalar>;
  using Access = WidestAccess<Scalar>;
  constexpr Index step = Index{warp} * Access::size;
  auto const count = static_cast<Sum>(width);
  auto const mask = residual.dropout.mask.resolved();
  AccessNumbers<Scalar> values, others;
  for (auto row = grid_warp(); row < rows; row += grid_warps()) {
    auto const at = row * width;
    Scalar const* from = x + at;
    Sum sum = 0;
    if (residual.value.data) {
      auto* const to = (norm_input ? norm_input : y) + at;
      DroppedRow<Scalar> const dropout(residual.dropout, mask, scale, row, width);
      for (auto first = lane() * Access::size; first < width; first += step) {
        Access const access(first, width);
        access.load_as(from, values);
        access.load_as(residual.value.data + at, others);
        dropout.apply(first, others);
        for (int j = 0; j < access.size; ++j) {
          auto const rounded = static_cast<Scalar>(rounded_sum(values[j], others[j]));
          values[j] = static_cast<Sum>(rounded);  // normalize the value that is stored
          sum += values[j];
        }
        access.put(values, to);
      }
      from = to;
    } else if (centre == Centering::mean) {
      for (auto first = lane() * Access::size; first < width; first += step) {
        Access(first, width).load_as(from, values);
        for (auto const value : values) sum += value;
      }
    }
    Sum const mean = centre == Centering::mean ? warp_sum(sum) / count : Sum{0};
    Sum squares = 0;
    for (auto first = lane() * Access::size; first < width; first += step) {
      Access const access(first, width);
      access.load_as(from, values);
      for (int j = 0; j < access.size; ++j)
        if (access.has(j)) squares += (values[j] - mean) * (values[j] - mean);
    }
    Sum const reciprocal = 1 / std::sqrt(warp_sum(squares) / count + epsilon);
    if (lane() == 0) {
      if (statistics.mean) statistics.mean[row * statistics.stride] = mean;
      if (statistics.reciprocal) statistics.reciprocal[row * statistics.stride] = reciprocal;
    }
    for (auto first = lane() * Access::size; first < width; first += step) {
      Access const access(first, width);
      access.load_as(from, values);
      access.load(weight, others);
      for (int j = 0; j < access.size; ++j) values[j] = others[j] * ((values[j] - mean) * reciprocal);
      if (bias) {
        access.load(bias, others);
        for (int j = 0; j < access.size; ++j) values[j] += others[j];
      }
      access.put(values, y + at);
    }
  }
}

/// Term of the parameters' sums over rows.
template <class Scalar, Centering centre>
struct NormParameterTerm {
  NormGradients<Scalar> in;

  __device__ void operator()(Index row, Index column, Accumulate<Scalar> (&sums)[norm_parameters<centre>]) const {
    using Sum = Accumulate<Scalar>;
    auto const at = row * in.width + column;
    auto const d = static_cast<Sum>(in.dy[at]);
    sums[0] += d * ((static_cast<Sum>(in.norm_input[at]) - in.mean(row)) * in.reciprocal(row));
    if constexpr (centre == Centering::mean) sums[1] += d;
  }
};

}  // namespace LOCKSTEP_CUDA_ABI

/// Returns the rows that share one partial sum of a norm's parameters, and the number of such chunks. Some hundreds of
/// chunks occupy a whole GPU, also for 2,000 rows. Depends only on the number of rows, so that no bit depends on the
/// GPU.
[[nodiscard]] constexpr Index row_chunk(Index rows) noexcept {
  return std::max(std::min<Index>(64, (rows + 2047) / 2048 * 8), (rows + 1023) / 1024);
}
[[nodiscard]] constexpr Index row_chunks(Index rows) noexcept {
  return std::max<Index>(1, (rows + row_chunk(rows) - 1) / std::max<Index>(1, row_chunk(rows)));
}
/// Returns the number of elements that `differentiate_norm` needs for the partial sums of one parameter.
[[nodiscard]] constexpr Index row_partials(Index rows, Index width) noexcept {
  return std::max(row_chunks(rows) == 1 ? 0 : row_chunks(rows) * width, column_partials(rows, width));
}

/// Normalizes rows: see LayerNorm::forward and RMSNorm::forward. A null bias is zero.
template <Centering centre, class Scalar>
void normalize(char const* name, memory::Stream<CudaSpace> stream, Index rows, Index width, Scalar const* x,
               Residual<Scalar, CudaSpace> residual, Accumulate<Scalar> const* weight, Accumulate<Scalar> const* bias,
               Accumulate<Scalar> epsilon, Scalar* norm_input, RowStatistics<Accumulate<Scalar>> statistics,
               Scalar* y) {
  auto const scale = static_cast<Accumulate<Scalar>>(residual.dropout.mask.scale());
  if (!RowPartition::fit<Scalar, normalized_groups<Scalar>>(width))
    return launch(name, stream, rows * warp, normalize_long_rows<Scalar, centre>, rows, width, x, residual, scale,
                  weight, bias, epsilon, norm_input, statistics, y);
  auto const partition = RowPartition::of<Scalar, normalized_groups<Scalar>>(
      width, is_aligned(x) && is_aligned(residual.value.data) && is_aligned(norm_input) && is_aligned(y),
      is_aligned(weight) && is_aligned(bias));
  auto const blocks =
      std::min<Index>((rows + partition.rows_per_block() - 1) / partition.rows_per_block(), Index{1} << 20);
  launch_grid(name, stream, static_cast<unsigned>(blocks), partition.block(),
              partition.wide ? normalize_rows<Scalar, centre, true> : normalize_rows<Scalar, centre, false>, partition,
              rows, x, residual, scale, weight, bias, epsilon, norm_input, statistics, y);
}

/// Computes all gradients of a norm, and the sums of dresidual's columns if their target is not null. If a cooperative
/// group's registers hold a row, one kernel computes the gradients of the rows and all sums over chunks of rows, and
/// each row is read once.
/// @shape partial [(norm_parameters<centre> + 1) * row_partials(rows, width)], overwritten
template <Centering centre, class Scalar>
void differentiate_norm(char const* name, memory::Stream<CudaSpace> stream, NormGradients<Scalar> const& in,
                        Accumulate<Scalar>* partial, ColumnTarget<Accumulate<Scalar>> dweight,
                        ColumnTarget<Accumulate<Scalar>> dbias, ColumnTarget<Accumulate<Scalar>> dresidual_sums) {
  using Sum = Accumulate<Scalar>;
  constexpr auto parameters = norm_parameters<centre>;
  if (!RowPartition::fit<Scalar, differentiated_groups<Scalar>>(in.width)) {
    // Parameters first: dx may overwrite dy.
    sum_columns<Sum, parameters>(name, stream, in.rows, in.width, NormParameterTerm<Scalar, centre>{in}, partial,
                                 dweight, dbias);
    launch(name, stream, in.rows * warp, differentiate_long_rows<Scalar, centre>, in);
    if (dresidual_sums.data)
      sum_matrix_columns<Scalar>(name, stream, in.rows, in.width, in.dresidual, partial, dresidual_sums);
    return;
  }
  auto const partition = RowPartition::of<Scalar, differentiated_groups<Scalar>>(
      in.width,
      is_aligned(in.dy) && is_aligned(in.norm_input) && is_aligned(in.other_gradient) && is_aligned(in.dx) &&
          is_aligned(in.dresidual),
      is_aligned(in.weight));
  auto const chunks = row_chunks(in.rows);
  launch_grid(name, stream, static_cast<unsigned>(chunks), partition.block(),
              partition.wide ? differentiate_rows<Scalar, centre, true> : differentiate_rows<Scalar, centre, false>,
              partition, in, row_chunk(in.rows), chunks > 1 ? partial : nullptr, dweight, dbias, dresidual_sums);
  if (!dresidual_sums.data)
    return finish_columns<Sum, parameters>(name, stream, chunks, in.width, partial, dweight, dbias);
  auto const second = centre == Centering::mean ? dbias : dresidual_sums;
  finish_columns<Sum, parameters + 1>(name, stream, chunks, in.width, partial, dweight, second, dresidual_sums);
}

}}}  // namespace lockstep::kernel::detail
