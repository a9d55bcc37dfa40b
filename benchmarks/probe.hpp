// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include <sized.hpp>
#include <lockstep/core/clock.hpp>

namespace lockstep_bench {

/// Returns the processors that this process may run on.
inline std::vector<int> processor_numbers() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> out;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) out.push_back(i);
  return out;
}

/// Binds the calling thread to one processor during its lifetime.
class [[nodiscard]] Pinned {
 public:
  explicit Pinned(int processor) {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(processor), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  }
  ~Pinned() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }
  Pinned(Pinned const&) = delete;
  Pinned& operator=(Pinned const&) = delete;

 private:
  cpu_set_t before_;
};

/// The state of the machine, measured by a cache line's round trip between cores. A virtual machine may switch, within
/// seconds, between cores that share a cache and cores that do not. Data transfer between cores or from memory then
/// runs at half or double speed.
struct Probe {
  double round_trip_ns = 0;  ///< 0 with only one processor

  /// The minimum of many short exchanges, so that other work on the machine does not look like distance. Takes some ms.
  static Probe measure() {
    auto const places = processor_numbers();
    if (places.size() < 2) return {};
    alignas(128) std::atomic<int> ping{0};
    alignas(128) std::atomic<int> pong{0};
    std::thread answering([&] {
      Pinned const here(places[1]);
      for (int i = 1; i <= exchanges; ++i) {
        while (ping.load(std::memory_order_acquire) < i) {
        }
        pong.store(i, std::memory_order_release);
      }
    });
    Pinned const here(places[0]);
    double best = std::numeric_limits<double>::max();
    double start = 0;
    for (int i = 1; i <= exchanges; ++i) {
      if (i % window == 0) start = lockstep::Clock::seconds();
      ping.store(i, std::memory_order_release);
      while (pong.load(std::memory_order_acquire) < i) {
      }
      if (i % window == window - 1 && i > window) best = std::min(best, lockstep::Clock::seconds() - start);
    }
    answering.join();
    return {best / window * 1e9};
  }

  /// Whether two probes found equal machine states.
  [[nodiscard]] static bool agree(Probe a, Probe b) {
    return a.round_trip_ns <= 1.5 * b.round_trip_ns && b.round_trip_ns <= 1.5 * a.round_trip_ns;
  }
  [[nodiscard]] char const* state() const {
    if (round_trip_ns == 0) return "one core";
    return round_trip_ns < 250 ? "cores share a cache" : "cores share no cache";
  }

 private:
  static constexpr int window = 200;
  static constexpr int exchanges = static_cast<int>(sized(100, 10)) * window;
};

}  // namespace lockstep_bench
