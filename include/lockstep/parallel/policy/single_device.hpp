// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/policy/detail/ready_times.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/parallel/session_base.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Trains on one device. The reference for the other policies.
struct SingleDevice {
  int threads = 0;  ///< threads of the device; 0 takes all cores

  [[nodiscard]] int shards() const noexcept { return 1; }                            ///< one device has one shard
  [[nodiscard]] int first_shard() const noexcept { return 0; }                       ///< the only one
  [[nodiscard]] int all_shards() const noexcept { return 1; }                        ///< no other process takes part
  [[nodiscard]] int threads_each() const { return threads_per_device(threads, 1); }  ///< `threads`, or all cores
  [[nodiscard]] Place place(int) const { return {.threads = threads_each()}; }       ///< this process's CPU
  /// as --parallel and run.json have it
  [[nodiscard]] static constexpr char const* name() noexcept { return "single"; }
  [[nodiscard]] static constexpr char const* engine() noexcept { return "self"; }  ///< no communication

  /// Session of one device: its replica, and the optimizer state.
  template <class Model, class Optimizer, class Space = HostSpace>
  class Session : public SessionBase<Session<Model, Optimizer, Space>, Replica<Model, Space>, Optimizer> {
   public:
    using DeviceReplica = Replica<Model, Space>;  ///< type of its replica

    /// Creates the replica. `policy` is a SingleDevice, or a policy derived from it.
    /// @shape values [layout.size()], the whole arena
    template <class Policy>
    [[gnu::cold]] Session(Policy& policy, Model const& model, nn::ParameterLayout const& layout,
                          std::span<float const> values)
        : replica_(model, layout, policy.place(0)), state_(layout), ready_times_(replica_) {
      replica_.set_values(values);
    }

    /// Runs forward and backward of one batch per local shard.
    template <class Batch>
    void micro_step(std::span<Batch const> batches, MicroStep const& step) {
      stop_requested_ = step.stop;
      ready_times_.run(replica_, batches, step);
    }

    /// Applies the gradients of all micro-batches since the first. Returns the step's loss over all shards.
    nn::Loss<HostSpace> update(Optimizer const& optimizer, UpdateSettings const& settings) {
      auto& device = replica_.device();
      auto const begin = device.now();
      replica_.zero_unused();
      device.begin_read(replica_.loss());
      state_.update(optimizer, replica_, replica_.loss(), settings);
      device.add_phase(&PhaseSeconds::optimizer, begin, device.now());
      return device.end_read();
    }

    [[nodiscard]] bool stop_requested() noexcept override { return stop_requested_; }

    /// Calls f(shard, replica) for each local shard, on the threads of the shard's device.
    template <class Function>
    void for_each_shard(Function&& f) {
      replica_.for_shards(0, f);
    }
    void all_reduce(std::span<double>) override {}

    /// Copies the first shard's buffers to every shard.
    [[gnu::cold]] void synchronize_buffers() override {
      if (replica_.shards() > 1) replica_.set_buffers(replica_.buffers());
    }

    [[gnu::cold]] void restore(SessionState& state) override {
      replica_.set_values(state.values());
      replica_.set_buffers(state.buffers());
      state_.set_moments(state, replica_.device());
    }
    [[nodiscard]] PhaseSeconds take_phases() override { return replica_.device().take_phases(); }
    [[nodiscard, gnu::cold]] SessionReport report() override {
      return {ready_times_.times(), {replica_.bytes() + state_.bytes()}, replica_.unused(replica_.used())};
    }

   private:
    friend class SessionBase<Session, DeviceReplica, Optimizer>;

    [[nodiscard]] DeviceReplica& first() noexcept { return replica_; }
    [[nodiscard]] DeviceReplica const& first() const noexcept { return replica_; }

    DeviceReplica replica_;
    OptimizerState<Optimizer, Space> state_;
    detail::ReadyTimes ready_times_;
    bool stop_requested_ = false;
  };
};
static_assert(ParallelPolicy<SingleDevice>);

}}}  // namespace lockstep::parallel
