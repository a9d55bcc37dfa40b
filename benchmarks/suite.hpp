// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <benchmark/benchmark.h>

#include <time.h>

#include <algorithm>
#include <concepts>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>

#include <probe.hpp>

/// Registers the benchmarks of a program. Each program defines it; main.cpp calls it.
void register_benchmarks();

namespace lockstep_bench {

/// A second purpose of a benchmark program, which starts itself as a child: `program --role=NAME ARGUMENT…`.
class Role {
 public:
  using Run = std::function<int(std::vector<std::string> const& arguments)>;
  Role(char const* name, Run run) { all()[name] = std::move(run); }

  static std::map<std::string, Run>& all() {
    static std::map<std::string, Run> roles;
    return roles;
  }
};

/// Failures of benchmarks, as opposed to skipped ones: they make the program fail.
inline int& failures() {
  static int count = 0;
  return count;
}

/// States why this machine cannot run a benchmark. Google Benchmark before 1.8 reports it as an error.
template <std::same_as<benchmark::State> State>
void skip(State& state, std::string const& reason) {
  if constexpr (requires { state.SkipWithMessage(reason); })
    state.SkipWithMessage(reason);
  else
    state.SkipWithError(("skipped: " + reason).c_str());
}

/// Sets the counters `algbw` and `busbw` of nccl-tests, in bytes per second, for an all-reduce of `bytes` per rank.
template <class Bytes, class Ranks>
void set_all_reduce_bandwidths(benchmark::State& state, Bytes bytes, Ranks ranks) {
  using benchmark::Counter;
  auto const moved = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  auto const n = static_cast<double>(ranks);
  state.counters["algbw"] = Counter(moved, Counter::kIsRate);
  state.counters["busbw"] = Counter(moved * 2 * (n - 1) / n, Counter::kIsRate);
}

inline void fail(benchmark::State& state, char const* what) {
  ++failures();
  state.SkipWithError(what);
}

/// Names of the counters that describe the machine during a run. ratios.py uses them; the console does not show them.
struct MachineCounters {
  static constexpr char const* round_trip = "round_trip_ns";  ///< of a cache line between two cores
  static constexpr char const* disturbed = "disturbed";       ///< 1 if the round trip changed during the run
  static constexpr char const* started = "started_s";         ///< since the program's start
};

/// Zero at the first call of the program: times of different benchmarks are comparable.
inline double seconds_since_first_call() {
  static double const first = lockstep::Clock::seconds();
  return lockstep::Clock::seconds() - first;
}

/// Registers a benchmark. Each run has the counters of MachineCounters, and an exception of `body` is the run's error.
/// The part `peer:NAME` in a name marks a peer of the benchmark without that part; `engine:NAME` marks variants that
/// have their peers in common.
template <class Body>
auto* add(std::string const& name, Body body) {
  return benchmark::RegisterBenchmark(name.c_str(), [body = std::move(body)](benchmark::State& state) mutable {
    auto const started = seconds_since_first_call();
    auto const before = Probe::measure();
    try {
      body(state);
    } catch (std::exception const& error) {
      fail(state, error.what());
      return;
    }
    auto const after = Probe::measure();
    state.counters[MachineCounters::round_trip] = (before.round_trip_ns + after.round_trip_ns) / 2;
    state.counters[MachineCounters::disturbed] = Probe::agree(before, after) ? 0 : 1;
    state.counters[MachineCounters::started] = started;
  });
}

/// Processor time of this process.
inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// A counter's mean over the iterations of a run.
inline benchmark::Counter per_iteration(double sum) { return {sum, benchmark::Counter::kAvgIterations}; }

/// Marks a run whose counters count, and whose time does not.
inline void counts_only(benchmark::State& state) { state.counters["counts_only"] = 1; }

/// An object that is made at its first use and shared by all that hold a copy: data that take long to make, or an
/// object that cannot be moved.
template <class T>
class Shared {
 public:
  explicit Shared(std::function<T()> make) : held_(std::make_shared<Held>(Held{std::move(make), {}})) {}
  T& operator*() const {
    if (!held_->value) held_->value.reset(new T(held_->make()));
    return *held_->value;
  }
  T* operator->() const { return &**this; }

 private:
  struct Held {
    std::function<T()> make;
    std::unique_ptr<T> value;
  };
  std::shared_ptr<Held> held_;
};
template <class Make>
Shared(Make) -> Shared<std::invoke_result_t<Make>>;

/// Registers a benchmark of pass(*object).
template <class T, class Pass>
auto* add_pass(std::string const& name, Shared<T> const& object, Pass pass) {
  return add(name, [=](benchmark::State& state) {
    pass(*object);  // page faults, caches, lazy setup
    for (auto _ : state) pass(*object);
  });
}

/// `name:number` parts of a benchmark's name.
inline std::string parts(std::initializer_list<std::pair<char const*, lockstep::Index>> numbers) {
  std::string out;
  for (auto const& [name, number] : numbers) out += std::string("/") + name + ":" + std::to_string(number);
  return out;
}

}  // namespace lockstep_bench
