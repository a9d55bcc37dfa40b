// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/device_threads.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_COLD_INLINE DeviceThreads::DeviceThreads(int devices) : errors_(static_cast<std::size_t>(devices)) {
  if (devices > 1) expect_stack_of_new_threads("DataParallel");
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

LOCKSTEP_COLD_INLINE DeviceThreads::~DeviceThreads() { stop(); }

LOCKSTEP_INLINE void DeviceThreads::run() {
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

LOCKSTEP_INLINE void DeviceThreads::execute(int device) noexcept {
  try {
    call_(body_, device);
  } catch (...) {
    errors_[static_cast<std::size_t>(device)] = std::current_exception();
  }
}

LOCKSTEP_INLINE void DeviceThreads::work(int device) noexcept {
  for (std::uint32_t seen = 0;;) {
    start_.wait([&](std::uint32_t now) { return now != seen; });
    seen = start_.load();
    if (stop_.load(std::memory_order_relaxed)) return;
    execute(device);
    if (running_.add(0U - 1U) == 0) running_.wake();
  }
}

LOCKSTEP_INLINE void DeviceThreads::stop() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  start_.add(1);
  start_.wake();
  join_threads(threads_, starter_);
}

}}}  // namespace lockstep::parallel
