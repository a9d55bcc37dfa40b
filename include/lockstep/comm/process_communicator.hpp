// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/shared_memory_communicator.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// Joins processes on one host through a file without a name that they inherited, mapped by all. Leaves nothing behind,
/// however they end. Not thread-safe. @determinism bitwise, equal to all engines of Lockstep
using ProcessCommunicator = detail::SharedMemoryCommunicator<launch::Engine::process>;
static_assert(Communicator<ProcessCommunicator>);

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
