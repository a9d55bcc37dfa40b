// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/comm/operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Returns whether the collective computes sums or another reduction.
[[nodiscard]] bool reduces(Collective collective) noexcept;

/// Returns whether the collective has its input in `in` instead of `data`.
[[nodiscard]] bool has_separate_input(Collective collective) noexcept;

[[nodiscard]] void const* input_of(CollectiveOperation const& operation) noexcept;

[[nodiscard]] Index element_bytes(CollectiveOperation const& operation) noexcept;

/// Returns the number of elements that belong to one rank, in its result or its input.
[[nodiscard]] Index part_elements(CollectiveOperation const& operation, int rank) noexcept;

[[nodiscard]] Index largest_part(CollectiveOperation const& operation) noexcept;

/// Returns the number of parts in an input.
[[nodiscard]] Index input_parts(CollectiveOperation const& operation, int ranks) noexcept;

/// Returns the number of bytes that a rank gives to the others.
[[nodiscard]] Index input_bytes(CollectiveOperation const& operation, int rank, int ranks) noexcept;

/// Returns the size of the largest input of a rank. Equal on all ranks.
[[nodiscard]] Index largest_input_bytes(CollectiveOperation const& operation, int ranks) noexcept;

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/detail/operation_sizes.ipp>
#endif
