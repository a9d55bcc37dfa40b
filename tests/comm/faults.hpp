// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <lockstep/comm/collectives/all_gather.hpp>
#include <lockstep/comm/collectives/reduce_scatter.hpp>
#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/shared_memory/detail/group_memory.hpp>

/// Failures between ranks, for the tests of all engines.
namespace lockstep_test {

/// Called by one rank before any connects: sets the number of past operations.
inline void start_counters_at(lockstep::launch::World const& world, std::uint32_t number) {
  lockstep::comm::detail::GroupMemory const memory(world.segment, world.size);
  for (int r = 0; r < world.size; ++r) {
    auto& block = memory.block(r);
    for (auto* counter : {&block.posted, &block.done, &block.staged, &block.combined}) counter->signal.store(number);
  }
}

/// Rank 1, of three, calls another operation than the others.
inline void disagree(lockstep::comm::AnyCommunicator& c, int kind) {
  using namespace lockstep;
  bool const other = c.rank() == 1;
  std::vector<double> x(64);
  std::vector<double> scalars(2);
  comm::CollectiveOperation operation{ElementType::float32, x.data(), 10, comm::Reduction::sum, {}};
  switch (kind) {
    case 0:
      operation.count = other ? 11 : 10;
      break;
    case 1:
      operation.type = other ? ElementType::float64 : ElementType::float32;
      break;
    case 2:
      operation.reduction = other ? comm::Reduction::max : comm::Reduction::sum;
      break;
    case 3:
      operation.piggybacked_scalars = {scalars.data(), other ? 2U : 1U};
      break;
    case 4:
      if (other) return c.barrier();
      break;
    case 5:
      return c.broadcast(x.data(), 8, other ? 1 : 0);
    case 6:
      return lockstep::comm::reduce_scatter(c, std::span(x.data(), 3), std::span(scalars.data(), 1),
                                            other ? comm::Reduction::max : comm::Reduction::sum)
          .wait();
    case 7: {
      std::vector<lockstep::Index> counts{4, 4, 4};
      if (other) counts = {5, 3, 4};
      auto const n = static_cast<std::size_t>(counts[static_cast<std::size_t>(c.rank())]);
      return lockstep::comm::all_gather(c, std::span(x.data(), n), std::span(x.data() + 8, 12), counts).wait();
    }
    default: {
      auto const n = other ? 2U : 1U;
      return lockstep::comm::all_gather(c, std::span(x.data(), n), std::span(x.data() + 8, 3 * n)).wait();
    }
  }
  c.start(operation);
  c.finish();
}

/// The last two of three ranks form a group, in which the last one is missing; the first, outside, continues after the
/// second has given up.
inline void stay_away(lockstep::comm::AnyCommunicator& c, std::atomic<bool>& given_up) {
  auto group = c.split(c.rank() > 0 ? 1 : 0, 0);
  try {
    if (c.rank() == 1) group.barrier();
  } catch (lockstep::RankStalled const&) {
    given_up = true;
    throw;
  }
  while (!given_up) std::this_thread::yield();
}

/// Name of the operation in which rank 1 (`other`) or the others were, as in errors.
inline std::string disagreement(int kind, bool other) {
  switch (kind) {
    case 0:
      return other ? "all_reduce of 11 float32 (sum, 0 piggybacked scalars)"
                   : "all_reduce of 10 float32 (sum, 0 piggybacked scalars)";
    case 1:
      return other ? "all_reduce of 10 float64 (sum, 0 piggybacked scalars)"
                   : "all_reduce of 10 float32 (sum, 0 piggybacked scalars)";
    case 2:
      return other ? "all_reduce of 10 float32 (max, 0 piggybacked scalars)"
                   : "all_reduce of 10 float32 (sum, 0 piggybacked scalars)";
    case 3:
      return other ? "all_reduce of 10 float32 (sum, 2 piggybacked scalars)"
                   : "all_reduce of 10 float32 (sum, 1 piggybacked scalar)";
    case 4:
      return other ? "barrier" : "all_reduce of 10 float32 (sum, 0 piggybacked scalars)";
    case 5:
      return other ? "broadcast of 8 bytes from rank 1" : "broadcast of 8 bytes from rank 0";
    case 6:
      return other ? "reduce_scatter of 1 float64 per rank (max)" : "reduce_scatter of 1 float64 per rank (sum)";
    case 7:
      return other ? "all_gather of 12 float64 in parts, 3 here" : "all_gather of 12 float64 in parts, 4 here";
    default:
      return other ? "all_gather of 2 float64 per rank" : "all_gather of 1 float64 per rank";
  }
}

}  // namespace lockstep_test
