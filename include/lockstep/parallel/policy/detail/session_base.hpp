// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Members that every session implements by its first replica and its optimizer state. `Session` derives from this
/// class, is its friend, and has `first()`, which returns the replica, and `state_`, the OptimizerState.
template <class Session>
class SessionBase {
 public:
  /// Returns whether the last update was skipped because measured gradients are not finite. Equal on all processes.
  [[nodiscard]] bool skipped() { return session().state_.skipped(session().first().device()); }
  /// Returns the mean gradient's norm before clipping, or 0 if the last update did not measure it. Equal on all
  /// processes.
  [[nodiscard]] double gradient_norm() { return session().state_.gradient_norm(session().first().device()); }

  /// Returns the first replica's buffers, on the host.
  [[nodiscard]] std::span<float const> buffers() const { return session().first().buffers(); }
  /// Returns the first replica's parameters, on the host.
  [[nodiscard]] std::span<float const> values() const { return session().first().values(); }
  /// Returns the optimizer's moment i, on the host. For a device this is a copy that the next call overwrites.
  [[nodiscard]] float const* moment(std::size_t i) {
    return session().state_.moment(i, session().first().device()).data();
  }

 private:
  friend Session;
  SessionBase() = default;

  [[nodiscard]] Session& session() noexcept { return static_cast<Session&>(*this); }
  [[nodiscard]] Session const& session() const noexcept { return static_cast<Session const&>(*this); }
};

}}}  // namespace lockstep::parallel::detail
