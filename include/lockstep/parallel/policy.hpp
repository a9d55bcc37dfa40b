// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/distributed_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Arithmetic of a GPU's matrix products of floats.
enum class MatmulPrecision {
  float32,  ///< factors are floats
  tf32,     ///< factors are rounded to TF32, which has 10 bits of fraction; sums are float: several times faster
  exact [[deprecated("float32")]] = float32,  ///< deprecated: use float32
};

/// Kernels of a GPU that compute attention in 16 bits.
enum class AttentionKernels {
  own,    ///< Lockstep's
  cudnn,  ///< cuDNN's fused kernels if it has them for a pass, otherwise Lockstep's; needs lockstep::cudnn
};

/// Returns the value's name, as in run.json.
[[nodiscard]] constexpr char const* name(MatmulPrecision precision) noexcept {
  return precision == MatmulPrecision::tf32 ? "tf32" : "float32";
}
/// Returns the value's name, as in run.json and in flags.
[[nodiscard]] constexpr char const* name(AttentionKernels kernels) noexcept {
  return kernels == AttentionKernels::cudnn ? "cudnn" : "own";
}

/// Resources of one replica.
struct Place {
  int threads = 1;                                              ///< threads on the host
  int gpu = 0;                                                  ///< number of the GPU, as this process sees it
  int shards = 1;                                               ///< shards of each micro-step that it computes in turns
  MatmulPrecision matmul_precision = MatmulPrecision::float32;  ///< on a GPU
  AttentionKernels attention = AttentionKernels::own;           ///< on a GPU
};

/// Distribution of training over devices: this process's shards of the global batch, and a `Session<Model, Optimizer>`
/// with their replicas, a parallel::Session (parallel/session.hpp). A shard is one device's or rank's part of each
/// micro-step. Under Reproducible a device has several shards.
template <class Candidate>
concept ParallelPolicy = requires(Candidate& policy) {
  { policy.shards() } -> std::same_as<int>;        // shards of this process
  { policy.first_shard() } -> std::same_as<int>;   // number of its first shard
  { policy.all_shards() } -> std::same_as<int>;    // shards of all processes
  { policy.threads_each() } -> std::same_as<int>;  // host threads of a device
  { policy.place(0) } -> std::same_as<Place>;      // place of a device of this process
  { policy.name() } -> std::convertible_to<char const*>;
  { policy.engine() } -> std::convertible_to<char const*>;  // engine that connects the processes
};

/// Returns the number of shards that each device of a policy computes.
template <ParallelPolicy Policy>
[[nodiscard]] int shards_of_device(Policy const& policy) {
  if constexpr (requires { policy.shards_each(); })
    return policy.shards_each();
  else
    return 1;
}

/// Settings of a policy that a trainer checks and records.
struct PolicySettings : DistributedOptions {
  int reproducible = 0;              ///< shards of a micro-step, if Reproducible fixes them; else 0
  bool can_shard_optimizer = false;  ///< whether the policy has the members of DistributedOptions
};

/// Returns a policy's settings. Options that the policy does not have as members keep their defaults.
template <ParallelPolicy Policy>
[[nodiscard]] PolicySettings settings_of(Policy const& policy) {
  PolicySettings settings;
  if constexpr (requires { policy.shards_each(), policy.all; }) settings.reproducible = policy.all;
  if constexpr (HasDistributedOptions<Policy const>) {
    settings.can_shard_optimizer = true;
    describe_distributed(settings).assign(describe_distributed(policy));
  }
  return settings;
}

/// Number of devices of a space on this machine; defined by the space's header (lockstep/cuda.cuh).
template <class Space>
struct DevicesOf;

/// Returns the number of threads for each of `devices` devices of this process. That is `asked`, or by default an equal
/// share of the process's cores, at least one.   @throws ConfigError if `asked` is negative
[[nodiscard]] int threads_per_device(int asked, int devices);

/// Returns the number of threads for one of `ranks` ranks with a device each. The ranks of a host share its cores. The
/// launcher sets their number; ranks that are threads are all on one host.
/// @throws ConfigError also if launchers contradict each other (launch::detect)
[[nodiscard]] int threads_per_rank(int asked, int ranks);

/// One micro-batch of an optimizer step.
struct MicroStep {
  std::uint64_t key = 0;  ///< key of random operations: (seed, epoch); equal on all shards
  bool first = true;      ///< clears the gradients first
  bool last = true;       ///< gradients are complete afterwards and may be sent
  bool stop = false;      ///< with `last`: this process requests a stop after the step
};

/// Result of Replica::rehearse.
enum class Rehearse {
  plans,       ///< memory, and plans of matrix products
  recordings,  ///< also recordings
};

/// Values that change with each optimizer step.
struct UpdateSettings {
  Index step = 1;                      ///< number of the step, from 1
  double learning_rate = 0;            ///< of this step: schedule and scaling applied
  double clip_norm = 0;                ///< largest norm of the mean gradient; 0 does not clip
  optim::LossScaler loss_scaler = {};  ///< used only with float16 activations
};

/// Seconds of a step by phase, on this process's slowest device.
struct PhaseSeconds {
  double forward = 0;        ///< 0 on a GPU
  double backward = 0;       ///< without exposed communication; 0 on a GPU
  double communication = 0;  ///< not hidden behind backward; includes waits for slower peers
  double optimizer = 0;      ///< the update of the parameters
  double pass = 0;           ///< on a GPU: forward and backward, measured together
};

/// Returns a phase's name, in static storage.
[[nodiscard]] char const* name_of(double PhaseSeconds::*phase) noexcept;

/// One gradient bucket of the last step; seconds are Clock::seconds().
struct BucketTimes {
  std::size_t bytes = 0;        ///< as sent: touched rows of a table, elements of the wire format
  double ready = 0;             ///< when its last gradient was written
  double start = 0;             ///< when the communicator got it; 0 without a communicator
  double end = 0;               ///< when it was reduced
  std::size_t table_bytes = 0;  ///< for a table: bytes of the whole table, where `bytes` counts touched rows; else 0
};

/// State from a checkpoint that a session restores, on the host. Equal in size on all ranks.
class SessionState {
 public:
  /// @param parameters elements of the parameters' arena
  /// @param buffers elements of the buffers' arena
  /// @param states number of the optimizer's moments
  SessionState(Index parameters, Index buffers, int states);

  /// Returns the parameters, [parameters].
  [[nodiscard]] std::span<float> values() noexcept { return numbers().first(parameters_); }
  /// Returns moment i of [0, states()), [parameters].
  [[nodiscard]] std::span<float> moments(std::size_t i) noexcept;
  /// Returns the buffers, [buffers].
  [[nodiscard]] std::span<float> buffers() noexcept { return numbers().subspan((1 + states_) * parameters_); }
  /// Returns the number of the optimizer's moments.
  [[nodiscard]] std::size_t states() const noexcept { return states_; }
  /// Returns all arenas, concatenated.
  [[nodiscard]] std::span<float> numbers() noexcept { return {numbers_.data(), numbers_.size()}; }

  std::string text;  ///< further state for all ranks

 private:
  std::size_t parameters_, states_;
  std::vector<float> numbers_;
};

/// Report of a session at the end of training.
struct SessionReport {
  std::vector<BucketTimes> buckets;                 ///< buckets of the last step, in launch order
  std::vector<std::size_t> peak_bytes_per_device;   ///< parameters, gradients, optimizer state, activations
  std::vector<std::string> unused_parameters = {};  ///< learned parameters that never got a gradient in any shard
};

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/policy.ipp>
#endif
