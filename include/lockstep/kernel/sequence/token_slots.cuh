// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/sequence/token_slots.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, equal to the host's for valid arguments; queued on the stream. One thread computes one slot.
template <>
struct TokenSlots<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes slots[i] = x.start(r) + places[i], and -1 in padding and for places at which x has no token.
  static void find(Stream stream, SequenceLayout<CudaSpace> x, SequenceLayout<CudaSpace> names,
                   Vector<std::int32_t const> places, Vector<std::int32_t> slots);

  /// Computes offsets[i] = x.start(r) + firsts[i], at most x.end(r). Does not check the firsts.
  static void group_offsets(Stream stream, SequenceLayout<CudaSpace> x, SequenceLayout<CudaSpace> names,
                            Vector<std::int32_t const> firsts, Vector<Index> offsets);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/sequence/token_slots.icuh>
#endif
