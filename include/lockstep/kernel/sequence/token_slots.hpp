// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Slots of tokens that are named by their place in their sequence, counted from 0.
template <class Space>
struct TokenSlots : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct TokenSlots<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes slots[i] = x.start(r) + places[i] for each token i of sequence r of `names`, and -1 in its padding.
  /// @shape x, names: layouts of equally many sequences   @shape places, slots [names.slots]
  /// @determinism bitwise, for any number of threads
  /// @throws RowError (at Contract::normal) for a place at which sequence r of x has no token
  static void find(Stream stream, SequenceLayout<HostSpace> x, SequenceLayout<HostSpace> names,
                   Vector<std::int32_t const> places, Vector<std::int32_t> slots);

  /// Computes the offsets of groups of consecutive tokens: offsets[i] = x.start(r) + firsts[i] for each token i of
  /// sequence r of `names`. The last offset is x.slots.
  /// @shape x, names: ragged layouts of equally many sequences   @shape firsts [names.slots], offsets [names.slots + 1]
  /// @determinism bitwise, for any number of threads
  /// @throws RowError (at Contract::normal) unless a sequence's firsts begin with 0, never decrease, and are at most
  /// its number of tokens in x; also for tokens in x without a group
  static void group_offsets(Stream stream, SequenceLayout<HostSpace> x, SequenceLayout<HostSpace> names,
                            Vector<std::int32_t const> firsts, Vector<Index> offsets);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/sequence/token_slots.ipp>
#endif
