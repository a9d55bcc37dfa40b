// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/signal_watch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE SignalWatch::SignalWatch(OnSignal on_signal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw ConfigError(std::string("launch: the system refused to watch signals (pipe2): ") + std::strerror(errno));
  heard_ = File(ends[0]), says_ = File(ends[1]);
  earlier_owner_ = owner_.exchange(::getpid());
  earlier_ = says_to_.exchange(says_.get());
  struct sigaction hears {};
  hears.sa_handler = hear;
  hears.sa_flags = SA_RESTART;
  sigset_t watched;
  ::sigemptyset(&watched);
  for (auto& [signal, taken, before] : watched_) {
    bool const asks = signal == SIGUSR1 || signal == SIGHUP;
    taken = (!asks || on_signal == OnSignal::ask) && ::sigaction(signal, nullptr, &before) == 0 &&
            before.sa_handler != SIG_IGN && ::sigaction(signal, &hears, nullptr) == 0;
    if (taken) ::sigaddset(&watched, signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &watched, &mask_before_);
}

LOCKSTEP_INLINE SignalWatch::~SignalWatch() {
  for (auto const& each : watched_)
    if (each.taken) ::sigaction(each.signal, &each.before, nullptr);
  says_to_ = earlier_;
  auto const owner = owner_.exchange(earlier_owner_);
  while (saying_ > 0 && owner == ::getpid()) std::this_thread::yield();  // before their descriptor is closed
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

LOCKSTEP_INLINE int SignalWatch::next() const noexcept {
  unsigned char signal = 0;
  return ::read(heard_.get(), &signal, 1) == 1 ? signal : 0;
}

LOCKSTEP_INLINE void SignalWatch::meet(int signal) const noexcept {
  for (auto const& each : watched_)
    if (each.taken && each.signal == signal) ::sigaction(signal, &each.before, nullptr);
  ::kill(::getpid(), signal);
}

LOCKSTEP_INLINE void SignalWatch::hear(int signal) noexcept {
  auto const before = errno;
  if (::getpid() != owner_) {  // a fork, which shares the pipe
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  ++saying_;
  auto const number = static_cast<unsigned char>(signal);
  static_cast<void>(::write(says_to_, &number, 1) == 1);
  --saying_;
  errno = before;
}

}}}  // namespace lockstep::launch::detail
