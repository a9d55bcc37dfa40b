// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/core/wait.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// One persistent thread for each device of a process; the calling thread is the first device's. A device's work always
/// runs on the same thread, unlike a ThreadPool's tasks, so its memory stays near its core.
class DeviceThreads {
 public:
  /// @throws ConfigError if the system has no more threads
  explicit DeviceThreads(int devices);
  ~DeviceThreads();
  DeviceThreads(DeviceThreads const&) = delete;
  DeviceThreads& operator=(DeviceThreads const&) = delete;

  /// Returns the number of devices, the calling thread's included.
  [[nodiscard]] int devices() const noexcept { return static_cast<int>(errors_.size()); }

  /// Calls f(device) for every device in parallel and returns when all are done. Allocates nothing.
  /// @throws the exception of the lowest device that throws; ConfigError in a fork, which lacks the threads
  template <class Function>
  void run(Function&& f) {
    call_ = [](void const* body, int device) {
      (*static_cast<std::remove_reference_t<Function>*>(const_cast<void*>(body)))(device);
    };
    body_ = std::addressof(f);
    run();
  }

 private:
  void run();
  void execute(int device) noexcept;
  void work(int device) noexcept;
  void stop() noexcept;

  Signal<> start_;    // number of runs
  Signal<> running_;  // threads that have not finished the current run
  std::atomic<bool> stop_{false};
  void (*call_)(void const*, int) = nullptr;
  void const* body_ = nullptr;
  std::vector<std::exception_ptr> errors_;
  ::pid_t const starter_ = ::getpid();
  std::vector<std::thread> threads_;
};

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/device_threads.ipp>
#endif
