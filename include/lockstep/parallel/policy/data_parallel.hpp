// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/optim/untouched_rows.hpp>
#include <lockstep/parallel/buffer_policy.hpp>
#include <lockstep/parallel/device_threads.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/policy/detail/device_replicas.hpp>
#include <lockstep/parallel/policy/detail/ready_times.hpp>
#include <lockstep/parallel/policy/detail/replica_sum.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/parallel/session_base.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Trains on several devices of one process, with a replica on each. Every step computes one batch per device in
/// parallel and sums the gradients on the first device. That device updates the parameters, which are then copied to
/// the others. The first device needs more memory, since it alone holds the optimizer's state.
/// @determinism bitwise, and equal to DistributedDataParallel with the same number of ranks
struct DataParallel {
  int devices = 2;                             ///< replicas in this process, at least 1
  int threads = 0;                             ///< threads of each device; 0 shares the cores equally
  BufferPolicy buffers = BufferPolicy::first;  ///< values of buffers in evaluations

  [[nodiscard]] int shards() const noexcept { return devices; }      ///< one per device
  [[nodiscard]] int first_shard() const noexcept { return 0; }       ///< this process computes all shards
  [[nodiscard]] int all_shards() const noexcept { return devices; }  ///< no other process takes part
  /// `threads`, or an equal share of the cores
  [[nodiscard]] int threads_each() const { return threads_per_device(threads, devices); }
  /// each device is a group of host threads
  [[nodiscard]] Place place(int) const { return {.threads = threads_each()}; }
  [[nodiscard]] static constexpr char const* name() noexcept { return "dp"; }  ///< as --parallel and run.json have it
  /// no communication between processes
  [[nodiscard]] static constexpr char const* engine() noexcept { return "self"; }

  /// Session of this process: a replica per device, and the optimizer state.
  template <class Model, class Optimizer, class Space = HostSpace>
  class Session : public SessionBase<Session<Model, Optimizer, Space>, Replica<Model, Space>, Optimizer> {
   public:
    using DeviceReplica = Replica<Model, Space>;            ///< type of a replica
    static constexpr bool update_copies_parameters = true;  ///< every device then has the first device's parameters

    /// Creates the replicas. `policy` is a DataParallel, or a policy derived from it.
    /// @shape values [layout.size()], the whole arena
    /// @throws ConfigError if the policy has no device
    template <class Policy>
    [[gnu::cold]] Session(Policy& policy, Model const& model, nn::ParameterLayout const& layout,
                          std::span<float const> values)
        : layout_(layout),
          buffer_policy_(policy.buffers),
          threads_(checked(policy.devices)),
          replicas_(replicas(policy, model, layout, values)),
          ready_times_(first()),
          sum_(threads_, bases_.all()),
          state_(layout),
          busy_(replicas_.size()) {}

    /// Runs forward and backward of one batch per shard, on all devices in parallel.
    template <class Batch>
    void micro_step(std::span<Batch const> batches, MicroStep const& step) {
      auto const begin = Clock::seconds();
      bases_.thread_exchange().begin();
      threads_.run([&](int device) {
        auto const at = static_cast<std::size_t>(device);
        auto const count = static_cast<std::size_t>(replicas_[at]->shards());
        auto const own = batches.subspan(at * count, count);
        try {
          if (device == 0)
            ready_times_.run(first(), own, step);
          else
            replicas_[at]->run_shards(own, step);
        } catch (...) {
          bases_.thread_exchange().end_pass(std::current_exception());
          throw;
        }
        bases_.thread_exchange().end_pass();
        busy_[at] += Clock::seconds() - begin;
      });
      stop_requested_ = step.stop;
    }

    /// Sums the gradients into the first device, updates there, and copies the parameters to the others.
    /// @returns the step's loss over all devices
    nn::Loss<HostSpace> update(Optimizer const& optimizer, UpdateSettings const& settings) {
      auto& device = first().device();
      auto const begin = device.now();
      nn::Loss<Space> const loss = sum_.gather(layout_.learned_size());
      auto const reduced = device.now();
      device.begin_read(loss);
      state_.update(optimizer, first(), loss, settings);
      auto const updated = device.now();
      sum_.broadcast(optim::leaves_untouched_rows(optimizer));
      device.add_phase(&PhaseSeconds::communication, begin, reduced);
      device.add_phase(&PhaseSeconds::optimizer, reduced, updated);
      device.add_phase(&PhaseSeconds::communication, updated, device.now());
      return device.end_read();
    }

    [[nodiscard]] bool stop_requested() noexcept override { return stop_requested_; }

    /// Calls f(shard, replica) for each shard, on the threads of the shard's device.
    template <class Function>
    void for_each_shard(Function&& f) {
      on_devices([&](int device, DeviceReplica& replica) { replica.for_shards(device, f); });
    }
    void all_reduce(std::span<double>) override {}

    /// Compares the bits of all devices' parameters, before an update. Only the first device has optimizer state.
    /// @throws CollectiveMismatch if they differ, with the first parameter that differs, and the devices
    [[gnu::cold]] void check_replicas(Index step) override { bases_.check(layout_, step); }

    /// Makes the buffers of all replicas equal, according to the policy.
    [[gnu::cold]] void synchronize_buffers() override { bases_.synchronize_buffers(buffer_policy_); }

    [[gnu::cold]] void restore(SessionState& state) override { bases_.restore(state, state_); }
    /// Returns the first device's phases. Its wait for slower devices counts as communication.
    [[nodiscard]] PhaseSeconds take_phases() override {
      auto phases = first().device().take_phases();
      phases.communication += *std::max_element(busy_.begin(), busy_.end()) - busy_[0];
      std::fill(busy_.begin(), busy_.end(), 0.0);
      return phases;
    }
    [[nodiscard, gnu::cold]] SessionReport report() override {
      auto report = bases_.report();
      report.buckets = ready_times_.times();
      report.peak_bytes_per_device[0] += state_.bytes();
      return report;
    }

   private:
    friend class SessionBase<Session, DeviceReplica, Optimizer>;

    static int checked(int devices) {
      if (devices < 1) throw ConfigError("DataParallel: " + std::to_string(devices) + " devices; at least 1 is needed");
      return devices;
    }
    using Replicas = std::vector<std::unique_ptr<DeviceReplica>>;
    template <class Policy>
    Replicas replicas(Policy& policy, Model const& model, nn::ParameterLayout const& layout,
                      std::span<float const> values) {
      Replicas all(static_cast<std::size_t>(policy.devices));
      threads_.run([&](int device) {  // each device's own thread touches its memory first
        auto& replica = all[static_cast<std::size_t>(device)];
        replica = std::make_unique<DeviceReplica>(model, layout, policy.place(device));
        replica->set_values(values);
      });
      for (auto const& replica : all) bases_.add(*replica);
      return all;
    }
    [[nodiscard]] DeviceReplica& first() const noexcept { return *replicas_[0]; }
    /// Calls f(device, replica) for each device, on its own thread.
    template <class Function>
    void on_devices(Function const& f) {
      threads_.run([&](int device) { f(device, *replicas_[static_cast<std::size_t>(device)]); });
    }

    nn::ParameterLayout const& layout_;
    BufferPolicy buffer_policy_;
    DeviceThreads threads_;
    detail::DeviceReplicas<typename DeviceReplica::Base> bases_{threads_};
    Replicas replicas_;
    detail::ReadyTimes ready_times_;
    detail::ReplicaSum<typename DeviceReplica::Base> sum_;
    OptimizerState<Optimizer, Space> state_;
    bool stop_requested_ = false;
    std::vector<double> busy_;  // seconds in micro-steps, per device
  };
};
static_assert(ParallelPolicy<DataParallel>);

}}}  // namespace lockstep::parallel
