// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/rank_main.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE int rank_main(World& world, std::function<int(World&)> const& train) {
  auto& control = world.segment->control();
  control.join(world.rank, ::getpid());
  int code = 1;
  std::string message;
  try {
    code = train(world);
  } catch (std::exception const& error) {
    auto const* const stalled = dynamic_cast<RankStalled const*>(&error);
    control[world.rank].lost_rank_zero.store(stalled && stalled->rank() == 0, std::memory_order_relaxed);
    code = exit_code(error);
    message = error.what();
  } catch (...) {
    message = "an exception of unknown type";
  }
  bool const stopped_on_request = world.stop_request && StopRequest::is_stop_exit_code(code);
  control.end_itself(world.rank, stopped_on_request ? 0 : code, 0, message);
  return code;
}

}}}  // namespace lockstep::launch::detail
