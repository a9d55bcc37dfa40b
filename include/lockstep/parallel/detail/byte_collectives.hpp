// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/comm/operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Copies the bytes of rank `root` to all ranks, after all operations that were started before.
template <class Communicator>
void broadcast_bytes(Communicator& communicator, void* data, std::size_t bytes, int root = 0) {
  comm::CollectiveOperation operation{.type = ElementType::uint8,
                                      .data = data,
                                      .count = static_cast<Index>(bytes),
                                      .collective = comm::Collective::broadcast,
                                      .root = root};
  communicator.start(operation);
  communicator.finish();
}

/// Gathers out[rank * bytes ...] = `in` of each rank, after all operations that were started before.
template <class Communicator>
void all_gather_bytes(Communicator& communicator, void const* in, void* out, std::size_t bytes) {
  comm::CollectiveOperation operation{.type = ElementType::uint8,
                                      .data = out,
                                      .count = static_cast<Index>(bytes),
                                      .collective = comm::Collective::all_gather,
                                      .in = in};
  communicator.start(operation);
  communicator.finish();
}

}}}  // namespace lockstep::parallel::detail
