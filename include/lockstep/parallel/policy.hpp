// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/launch/environment.hpp>
#include <lockstep/optim/loss_scaler.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// Where one replica computes.
struct Place {
  int threads = 1;  ///< on the host
  int gpu = 0;      ///< on CUDA: its number, among those that this process sees
  int shards = 1;   ///< that it computes of each micro-step, one after the other
};

/// How a trainer runs on devices: this process's shards of the global batch, and a `Session<Model, Optimizer>` that
/// holds their replicas (docs/reference/parallel.md lists its members). A shard is what one device (or rank) computes
/// of each micro-step; under Reproducible a device has several of them.
template <class P>
concept ParallelPolicy = requires(P& policy) {
  { policy.shards() } -> std::same_as<int>;        // of this process
  { policy.first_shard() } -> std::same_as<int>;   // the number of the first of them
  { policy.all_shards() } -> std::same_as<int>;    // of all processes together
  { policy.threads_each() } -> std::same_as<int>;  // of a device, on the host
  { policy.place(0) } -> std::same_as<Place>;      // of a device of this process
  { policy.name() } -> std::convertible_to<char const*>;
  { policy.engine() } -> std::convertible_to<char const*>;  // what joins its processes
};

/// How many shards each device of a policy computes.
template <ParallelPolicy Policy>
[[nodiscard]] int shards_of_device(Policy const& policy) {
  if constexpr (requires { policy.shards_each(); })
    return policy.shards_each();
  else
    return 1;
}

/// How many devices of a space this machine has; defined with what that space needs (lockstep/cuda.cuh).
template <class Space>
struct DevicesOf;

/// Threads for each of `devices` devices of this process: as asked for, else an equal share of the cores that
/// the process was given (at least one).   @throws ConfigError when fewer than 0 are asked for
[[nodiscard]] inline int threads_per_device(int asked, int devices) {
  if (asked < 0)
    throw ConfigError("parallel policy: threads is " + std::to_string(asked) +
                      "; it must be at least 0, which shares the cores equally");
  if (asked > 0) return asked;
  return std::max(1, processors() / std::max(1, devices));
}

/// The same for one of `ranks` ranks that have a device each: those of this host share its cores. Who started them says
/// how many these are; ranks that are threads are all on one.
/// @throws ConfigError also when what launchers say contradicts itself (launch::detect)
[[nodiscard]] inline int threads_per_rank(int asked, int ranks) {
  if (asked != 0) return threads_per_device(asked, ranks);
  auto const place = launch::detect();
  return std::max(1, launch::cores_of_ranks(place) / std::max(1, place.size > 1 ? place.local_size : ranks));
}

/// What changes from one optimizer step to the next.
struct UpdateSettings {
  Index step = 1;  ///< from 1
  double learning_rate = 0;
  double clip_norm = 0;  ///< largest norm of the mean gradient; 0 does not clip
  optim::LossScaler loss_scaler = {};
};

/// Where the seconds of a step went, on this process's slowest device.
struct PhaseSeconds {
  double forward = 0;
  double backward = 0;
  double communication = 0;  ///< not hidden behind backward, waiting for slower peers included
  double optimizer = 0;
  double pass = 0;  ///< of a GPU: forward and backward, which are one piece of work there
};

/// A phase's name, in static storage.
[[nodiscard]] inline char const* name_of(double PhaseSeconds::*phase) noexcept {
  if (phase == &PhaseSeconds::forward) return "forward";
  if (phase == &PhaseSeconds::backward) return "backward";
  if (phase == &PhaseSeconds::communication) return "communication";
  return phase == &PhaseSeconds::optimizer ? "optimizer" : "forward and backward";
}

/// One gradient bucket of the last step; seconds are Clock::seconds().
struct BucketTimes {
  std::size_t bytes = 0;
  double ready = 0;             ///< its last gradient was written
  double start = 0;             ///< handed to the communicator; 0 where there is none
  double end = 0;               ///< reduced
  std::size_t table_bytes = 0;  ///< of the whole table, where `bytes` are those of the rows that were touched; else 0
};

/// What a checkpoint brings back to a session, on the host. Alike in size on all ranks.
class SessionState {
 public:
  /// Elements of the arena of parameters and of that of buffers; how many arenas the optimizer has.
  SessionState(Index parameters, Index buffers, int states)
      : parameters_(static_cast<std::size_t>(parameters)),
        states_(static_cast<std::size_t>(states)),
        numbers_((1 + states_) * parameters_ + static_cast<std::size_t>(buffers)) {}

  [[nodiscard]] std::span<float> values() noexcept { return numbers().first(parameters_); }
  [[nodiscard]] std::span<float> moments(std::size_t i) noexcept {
    return numbers().subspan((1 + i) * parameters_, parameters_);
  }
  [[nodiscard]] std::span<float> buffers() noexcept { return numbers().subspan((1 + states_) * parameters_); }
  [[nodiscard]] std::size_t states() const noexcept { return states_; }
  /// All of them, one arena behind the other.
  [[nodiscard]] std::span<float> numbers() noexcept { return numbers_; }

  std::string text;  ///< what else all ranks are to know

 private:
  std::size_t parameters_, states_;
  std::vector<float> numbers_;
};

/// What a session says of itself when training is over.
struct SessionReport {
  std::vector<BucketTimes> buckets;                 ///< of the last step, in launch order
  std::vector<std::size_t> peak_bytes_per_device;   ///< parameters, gradients, optimizer state, activations
  std::vector<std::string> unused_parameters = {};  ///< those to whose gradient no step of any shard wrote
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
