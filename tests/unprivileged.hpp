// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

namespace lockstep_test {

/// During its lifetime, this process is not the superuser, to whom permissions do not apply. For a single-threaded
/// process.
class [[nodiscard]] Unprivileged {
 public:
  Unprivileged() : was_(::geteuid()) {
    if (was_ == 0) holds_ = ::seteuid(nobody) == 0;
  }
  ~Unprivileged() {
    if (was_ == 0 && holds_) static_cast<void>(::seteuid(was_) == 0);
  }
  Unprivileged(Unprivileged const&) = delete;
  Unprivileged& operator=(Unprivileged const&) = delete;

  /// False if the superuser cannot change its user: a container may know no other user.
  [[nodiscard]] explicit operator bool() const noexcept { return holds_; }

 private:
  static constexpr ::uid_t nobody = 65534;
  ::uid_t was_;
  bool holds_ = true;
};

}  // namespace lockstep_test
