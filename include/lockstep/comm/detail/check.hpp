// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/operation.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

[[noreturn]] void refuse_operation(std::string const& reason);

void check_reduction(CollectiveOperation const& operation);

void check_memory(CollectiveOperation const& operation, void const* data, Index count, char const* what);

void check_counts(CollectiveOperation const& operation, int ranks);

/// Rejects operations that no engine can run, before another rank sees them. @throws ConfigError
void check(CollectiveOperation const& operation, int rank = 0, int ranks = 1);

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/detail/check.ipp>
#endif
