// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/signal_watch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE SignalWatch::SignalWatch(OnSignal on_signal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw ConfigError(std::string("launch: the system refused to watch signals (pipe2): ") + std::strerror(errno));
  read_end_ = FileDescriptor(ends[0]);
  write_end_ = FileDescriptor(ends[1]);
  earlier_owner_ = owner_.exchange(::getpid());
  earlier_ = handler_pipe_.exchange(write_end_.get());
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigset_t watched;
  ::sigemptyset(&watched);
  for (auto& [signal, installed, before] : watched_) {
    bool const ends_any_run = signal == SIGINT || signal == SIGTERM;
    bool const may_be_of_program = signal == SIGUSR2 || signal == SIGXCPU;
    installed = (ends_any_run || on_signal == OnSignal::request_stop) && ::sigaction(signal, nullptr, &before) == 0 &&
                before.sa_handler != SIG_IGN && !(may_be_of_program && before.sa_handler != SIG_DFL) &&
                ::sigaction(signal, &action, nullptr) == 0;
    if (installed) ::sigaddset(&watched, signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &watched, &mask_before_);
}

LOCKSTEP_INLINE SignalWatch::~SignalWatch() {
  for (auto const& each : watched_)
    if (each.installed) ::sigaction(each.signal, &each.before, nullptr);
  handler_pipe_ = earlier_;
  auto const owner = owner_.exchange(earlier_owner_);
  while (running_handlers_ > 0 && owner == ::getpid()) std::this_thread::yield();  // before their descriptor is closed
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

LOCKSTEP_INLINE int SignalWatch::next() const noexcept {
  unsigned char signal = 0;
  return ::read(read_end_.get(), &signal, 1) == 1 ? signal : 0;
}

LOCKSTEP_INLINE void SignalWatch::apply_default_effect(int signal) const noexcept {
  for (auto const& each : watched_)
    if (each.installed && each.signal == signal) ::sigaction(signal, &each.before, nullptr);
  ::kill(::getpid(), signal);
}

LOCKSTEP_INLINE void SignalWatch::handle(int signal) noexcept {
  auto const before = errno;
  if (::getpid() != owner_) {  // a fork, which shares the pipe
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  ++running_handlers_;
  auto const number = static_cast<unsigned char>(signal);
  static_cast<void>(::write(handler_pipe_, &number, 1) == 1);
  --running_handlers_;
  errno = before;
}

}}}  // namespace lockstep::launch::detail
