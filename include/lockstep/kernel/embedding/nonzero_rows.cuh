// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Sets bit r % 64 of word r / 64 if row r has an element other than +0, and clears it if not; queued on the stream.
/// @shape table [rows, width]   @shape words [TouchedRows::words_for(rows)] in device memory
template <class Scalar>
void find_nonzero_rows(memory::Stream<CudaSpace> stream, TensorView<Scalar const, 2, CudaSpace> table,
                       std::uint64_t* words);
/// Copies rows of a table to contiguous memory: packed[k] = table[rows[k]] for k < count; queued on the stream.
/// @shape table [., width]   @shape rows [count] in device memory   @shape packed [count, width]
template <class Scalar>
void pack_rows(memory::Stream<CudaSpace> stream, Scalar const* table, Index width, std::int32_t const* rows,
               Index count, Scalar* packed);
/// Copies them back: table[rows[k]] = packed[k] for k < count. All rows[k] are different.
template <class Scalar>
void unpack_rows(memory::Stream<CudaSpace> stream, Scalar const* packed, Index width, std::int32_t const* rows,
                 Index count, Scalar* table);

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/embedding/nonzero_rows.icuh>
#endif
