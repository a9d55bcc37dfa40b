// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/shared_memory/detail/shared_memory_communicator.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Connects processes on one host through an inherited anonymous file that all of them map. No file remains, even if
/// the processes crash. Not thread-safe. @determinism bitwise, equal to all other engines except NCCL
using ProcessCommunicator = detail::SharedMemoryCommunicator<launch::Engine::process>;
static_assert(Communicator<ProcessCommunicator>);

}}}  // namespace lockstep::comm
