// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/team.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One block finds 64 rows, a word of bits. Its warps take them in turn.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void find_nonzero_rows(Scalar const* table, Index rows, Index width, std::uint64_t* words) {
  constexpr Index in_word = 64, warps = BlockTeam::size / WarpTeam::size;
  __shared__ int nonzero[in_word];
  for (auto word = BlockTeam::first(); word * in_word < rows; word += BlockTeam::count()) {
    auto const first = word * in_word, count = min(in_word, rows - first);
    for (Index row = BlockTeam::member() / WarpTeam::size; row < count; row += warps) {
      auto const* const x = table + (first + row) * width;
      int any = 0;
      for (auto i = WarpTeam::member(); i < width; i += WarpTeam::size)
        any |= x[i] != Scalar{0} || std::signbit(x[i]) ? 1 : 0;
      any = WarpTeam::largest(any);
      if (WarpTeam::member() == 0) nonzero[row] = any;
    }
    BlockTeam::synchronize();
    if (BlockTeam::member() == 0) {
      std::uint64_t bits = 0;
      for (Index row = 0; row < count; ++row) bits |= static_cast<std::uint64_t>(nonzero[row]) << row;
      words[word] = bits;
    }
    BlockTeam::synchronize();
  }
}

template <class Scalar>
LOCKSTEP_CUDA_KERNEL void pack_rows(Scalar const* table, Index width, std::int32_t const* rows, Index count,
                                    Scalar* packed) {
  for (auto k = WarpTeam::first(); k < count; k += WarpTeam::count())
    for (auto i = WarpTeam::member(); i < width; i += WarpTeam::size)
      packed[k * width + i] = table[Index{rows[k]} * width + i];
}
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void unpack_rows(Scalar const* packed, Index width, std::int32_t const* rows, Index count,
                                      Scalar* table) {
  for (auto k = WarpTeam::first(); k < count; k += WarpTeam::count())
    for (auto i = WarpTeam::member(); i < width; i += WarpTeam::size)
      table[Index{rows[k]} * width + i] = packed[k * width + i];
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Sets bit r % 64 of word r / 64 if row r has an element other than +0, and clears it if not; queued on the stream.
/// @shape table [rows, width]   @shape words [TouchedRows::words_for(rows)] in device memory
template <class Scalar>
void find_nonzero_rows(memory::Stream<CudaSpace> stream, TensorView<Scalar const, 2, CudaSpace> table,
                       std::uint64_t* words) {
  constexpr Index max_blocks = Index{1} << 20;
  auto const blocks = std::min((table.extent[0] + 63) / 64, max_blocks);
  detail::launch_grid("kernel::find_nonzero_rows", stream, static_cast<unsigned>(blocks), detail::threads_per_block,
                      detail::find_nonzero_rows<Scalar>, table.data, table.extent[0], table.extent[1], words);
}
/// Copies rows of a table to contiguous memory: packed[k] = table[rows[k]] for k < count; queued on the stream.
/// @shape table [., width]   @shape rows [count] in device memory   @shape packed [count, width]
template <class Scalar>
void pack_rows(memory::Stream<CudaSpace> stream, Scalar const* table, Index width, std::int32_t const* rows,
               Index count, Scalar* packed) {
  detail::launch_teams<detail::WarpTeam>("kernel::pack_rows", stream, count, detail::pack_rows<Scalar>, table, width,
                                         rows, count, packed);
}
/// Copies them back: table[rows[k]] = packed[k] for k < count. All rows[k] are different.
template <class Scalar>
void unpack_rows(memory::Stream<CudaSpace> stream, Scalar const* packed, Index width, std::int32_t const* rows,
                 Index count, Scalar* table) {
  detail::launch_teams<detail::WarpTeam>("kernel::unpack_rows", stream, count, detail::unpack_rows<Scalar>, packed,
                                         width, rows, count, table);
}

}}}  // namespace lockstep::kernel
