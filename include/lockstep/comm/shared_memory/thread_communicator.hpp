// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/shared_memory/detail/shared_memory_communicator.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Connects threads of one process. Every rank reads and writes the memory of all, in place.
/// Not thread-safe: each rank has its own. @determinism bitwise, equal to all other engines except NCCL
using ThreadCommunicator = detail::SharedMemoryCommunicator<launch::Engine::thread>;
static_assert(Communicator<ThreadCommunicator>);

}}}  // namespace lockstep::comm
