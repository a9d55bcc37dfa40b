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
  explicit DeviceThreads(int devices) : errors_(static_cast<std::size_t>(devices)) {
    try {
      threads_.reserve(errors_.size());
      for (int device = 1; device < devices; ++device)
        threads_.push_back(start_thread(
            "DataParallel", "the thread of device " + std::to_string(device) + " of " + std::to_string(devices),
            [this, device] { work(device); }));
    } catch (...) {
      stop();
      throw;
    }
  }
  ~DeviceThreads() { stop(); }
  DeviceThreads(DeviceThreads const&) = delete;
  DeviceThreads& operator=(DeviceThreads const&) = delete;

  [[nodiscard]] int devices() const noexcept { return static_cast<int>(errors_.size()); }

  /// Calls f(device) for every device in parallel and returns when all are done. Allocates nothing.
  /// @throws the exception of the lowest device that throws; ConfigError in a fork, which lacks the threads
  template <class F>
  void run(F&& f) {
    call_ = [](void const* body, int device) {
      (*static_cast<std::remove_reference_t<F>*>(const_cast<void*>(body)))(device);
    };
    body_ = std::addressof(f);
    run();
  }

 private:
  void run() {
    expect<ConfigError>(threads_.empty() || ::getpid() == starter_, [&] {
      return "DataParallel: process " + std::to_string(starter_) + " has started the threads of its " +
             std::to_string(devices()) + " devices, and its fork, process " + std::to_string(::getpid()) +
             ", does not have them; make trainers after the fork";
    });
    running_.store(static_cast<std::uint32_t>(threads_.size()));
    start_.add(1);
    start_.wake();
    execute(0);
    running_.wait([](std::uint32_t left) { return left == 0; });
    std::exception_ptr first;
    for (auto& error : errors_) {
      if (error && !first) first = error;
      error = nullptr;
    }
    if (first) std::rethrow_exception(first);
  }
  void execute(int device) noexcept {
    try {
      call_(body_, device);
    } catch (...) {
      errors_[static_cast<std::size_t>(device)] = std::current_exception();
    }
  }
  void work(int device) noexcept {
    for (std::uint32_t seen = 0;;) {
      start_.wait([&](std::uint32_t now) { return now != seen; });
      seen = start_.load();
      if (stop_.load(std::memory_order_relaxed)) return;
      execute(device);
      if (running_.add(0U - 1U) == 0) running_.wake();
    }
  }
  void stop() noexcept {
    stop_.store(true, std::memory_order_relaxed);
    start_.add(1);
    start_.wake();
    join_threads(threads_, starter_);
  }

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
