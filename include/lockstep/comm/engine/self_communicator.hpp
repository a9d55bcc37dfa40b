// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/core/clock.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Null engine for a single rank: each sum equals its input. @determinism bitwise
class SelfCommunicator {
 public:
  [[nodiscard]] int rank() const noexcept { return 0; }               ///< the only rank
  [[nodiscard]] int size() const noexcept { return 1; }               ///< one rank
  [[nodiscard]] char const* name() const noexcept { return "self"; }  ///< as in run.json
  /// Returns zeroed host memory.
  [[nodiscard]] memory::Block allocate(std::size_t bytes) const { return memory::HostResource{}.allocate(bytes); }

  /// Completes the operation at once. @throws ConfigError if no engine can run it
  void start(CollectiveOperation& operation) const {
    detail::check(operation);
    auto const count = detail::part_elements(operation, 0);
    void const* const in = detail::input_of(operation);
    bool const logical = operation.reduction == Reduction::logical_or || operation.reduction == Reduction::logical_and;
    if (logical && detail::reduces(operation.collective))
      detail::reduce_range(operation.reduction, operation.type, &in, 1, &operation.data, 1, 0, count);
    else if (count != 0 && in != operation.data)
      std::memcpy(operation.data, in, static_cast<std::size_t>(count) * size_of(operation.type));
    operation.started_seconds = operation.finished_seconds = Clock::seconds();
  }
  void progress() const noexcept {}                        ///< nothing to do
  void wait(CollectiveOperation const&) const noexcept {}  ///< nothing to wait for
  void finish() const noexcept {}                          ///< nothing to wait for
  /// Returns a communicator of this rank.
  [[nodiscard]] SelfCommunicator split(int, int) const noexcept { return {}; }
};
static_assert(Communicator<SelfCommunicator>);

}}}  // namespace lockstep::comm
