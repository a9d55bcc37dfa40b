// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

namespace lockstep_test {

/// While it lives, this process is not the superuser, whom permissions do not stop. For a process of one thread.
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

  /// False where the superuser may be nobody else: a container may know no other user.
  [[nodiscard]] explicit operator bool() const noexcept { return holds_; }

 private:
  static constexpr ::uid_t nobody = 65534;
  ::uid_t was_;
  bool holds_ = true;
};

}  // namespace lockstep_test
