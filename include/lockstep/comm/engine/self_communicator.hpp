// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/core/clock.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Null engine for a single rank: each sum equals its input. @determinism bitwise
class SelfCommunicator {
 public:
  [[nodiscard]] int rank() const noexcept { return 0; }
  [[nodiscard]] int size() const noexcept { return 1; }
  [[nodiscard]] char const* name() const noexcept { return "self"; }
  [[nodiscard]] memory::Block allocate(std::size_t bytes) const { return memory::HostResource{}.allocate(bytes); }

  /// Completes the operation at once. @throws ConfigError if no engine can run it
  void start(Piece& piece) const {
    detail::check(piece);
    bool const apart = piece.collective == Collective::reduce_scatter || piece.collective == Collective::all_gather;
    auto const count = detail::input_count(piece, 0, 1);
    void const* const in = apart ? piece.in : piece.data;
    if (piece.operation == Operation::logical_or || piece.operation == Operation::logical_and)
      detail::reduce_range(piece.operation, piece.type, &in, 1, &piece.data, 1, 0, count);
    else if (apart && count != 0 && in != piece.data)
      std::memcpy(piece.data, in, static_cast<std::size_t>(count) * size_of(piece.type));
    piece.started_seconds = piece.finished_seconds = Clock::seconds();
  }
  void progress() const noexcept {}
  void wait(Piece const&) const noexcept {}
  void finish() const noexcept {}
  [[nodiscard]] SelfCommunicator split(int, int) const noexcept { return {}; }
};
static_assert(Communicator<SelfCommunicator>);

}}}  // namespace lockstep::comm
