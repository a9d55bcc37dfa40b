// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/engine/any_communicator.hpp>
#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/comm/shared_memory/process_communicator.hpp>
#include <lockstep/comm/shared_memory/thread_communicator.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Returns a communicator that connects the ranks of a world. Not collective: the first operation waits for the other
/// ranks. A rank can hold one such communicator at a time.
/// @throws ConfigError if this rank is already connected, or if the world's engine is mpi, store or nccl
[[nodiscard]] AnyCommunicator connect(launch::World const& world);

}}}  // namespace lockstep::comm

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/engine/connect.ipp>
#endif
