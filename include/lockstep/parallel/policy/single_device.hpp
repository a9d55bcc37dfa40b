// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/policy/detail/ready_parts.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Trains on one device. The reference for the other policies.
struct SingleDevice {
  int threads = 0;  ///< threads of the device; 0 takes all cores

  [[nodiscard]] int shards() const noexcept { return 1; }
  [[nodiscard]] int first_shard() const noexcept { return 0; }
  [[nodiscard]] int all_shards() const noexcept { return 1; }
  [[nodiscard]] int threads_each() const { return threads_per_device(threads, 1); }
  [[nodiscard]] Place place(int) const { return {.threads = threads_each()}; }
  [[nodiscard]] static constexpr char const* name() noexcept { return "single"; }
  [[nodiscard]] static constexpr char const* engine() noexcept { return "self"; }

  template <class Model, class Optimizer, class Space = HostSpace>
  class Session {
   public:
    using DeviceReplica = Replica<Model, Space>;

    /// Creates the replica. `policy` is a SingleDevice, or a policy derived from it.
    /// @shape values [layout.size()], the whole arena
    template <class Policy>
    Session(Policy& policy, Model const& model, nn::ParameterLayout const& layout, std::span<float const> values)
        : replica_(model, layout, policy.place(0)), state_(layout), parts_(replica_) {
      replica_.set_values(values);
    }

    /// Runs forward and backward of one batch per local shard.
    template <class Batch>
    void micro_step(std::span<Batch const> batches, MicroStep const& step) {
      stops_ = step.stop;
      parts_.run(batches, step);
    }

    /// Applies the gradients of all micro-batches since the first. Returns the step's loss over all shards.
    nn::Loss<HostSpace> update(Optimizer const& optimizer, UpdateSettings const& settings) {
      auto& device = replica_.device();
      auto const begin = device.now();
      replica_.zero_unused();
      device.begin_read(replica_.loss());
      state_.update(optimizer, replica_, replica_.loss(), settings);
      device.took(&PhaseSeconds::optimizer, begin, device.now());
      return device.end_read();
    }

    /// Returns, after an update, whether a process requested a stop with its last micro-step. Equal on all processes.
    [[nodiscard]] bool stops() const noexcept { return stops_; }
    /// Returns whether the last update was skipped because measured gradients are not finite. Equal on all processes.
    [[nodiscard]] bool skipped() { return state_.skipped(replica_.device()); }
    /// Returns the mean gradient's norm before clipping, or 0 if the last update did not measure it. Equal on all
    /// processes.
    [[nodiscard]] double gradient_norm() { return state_.gradient_norm(replica_.device()); }

    /// Calls f(shard, replica) for each local shard, on the threads of the shard's device.
    template <class F>
    void each(F&& f) {
      replica_.for_shards(0, f);
    }
    /// Sums numbers over all processes, in place.
    void all_reduce(std::span<double>) {}

    /// Copies the first shard's buffers to every shard.
    void share_buffers() {
      if (replica_.shards() > 1) replica_.set_buffers(replica_.buffers());
    }
    [[nodiscard]] std::span<float const> buffers() const { return replica_.buffers(); }

    [[nodiscard]] std::span<float const> values() const { return replica_.values(); }
    /// Returns the optimizer's moment i, on the host. For a device this is a copy that the next call overwrites.
    [[nodiscard]] float const* moment(std::size_t i) { return state_.moment(i, replica_.device()).data(); }
    /// Restores the state of a checkpoint.
    void restore(SessionState& state) {
      replica_.set_values(state.values());
      replica_.set_buffers(state.buffers());
      state_.set_moments(state, replica_.device());
    }
    [[nodiscard]] PhaseSeconds take_phases() { return replica_.device().take_phases(); }
    [[nodiscard]] SessionReport report() const {
      return {parts_.times(), {replica_.bytes() + state_.bytes()}, replica_.unused(replica_.used())};
    }

   private:
    DeviceReplica replica_;
    OptimizerState<Optimizer, Space> state_;
    detail::ReadyParts<DeviceReplica> parts_;
    bool stops_ = false;
  };
};
static_assert(ParallelPolicy<SingleDevice>);

}}}  // namespace lockstep::parallel
