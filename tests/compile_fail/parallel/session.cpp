// SPDX-License-Identifier: Apache-2.0
// CASE no_base: Lockstep: the policy's Session does not derive from parallel::SessionBase<Session, Replica, Optimizer>
// CASE abstract: Lockstep: the policy's Session does not override a function of parallel::AnySession
// CASE no_replicas: Lockstep: the policy's Session has no DeviceReplica, or no for_each_shard(f)
// CASE no_micro_step: Lockstep: the policy's Session has no micro_step(std::span<Batch const>, MicroStep const&)
// CASE no_update: Lockstep: the policy's Session has no update(optimizer, UpdateSettings const&) -> nn::Loss<HostSpace>
// CASE no_rehearsal: Lockstep: the policy's Session has no rehearse(std::span<Batch const>, std::span<MicroStep const>
// CASE no_constructor: Lockstep: the policy's Session has no constructor (policy, model, layout, values)
#include <span>

#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/parallel/session_base.hpp>
#include <lockstep/train/trainer/trainer.hpp>

using namespace lockstep;

struct Model {
  void visit(auto&&) {}
  template <class Context>
  nn::LossOf<Context> forward(Context&, auto const&) const {
    return {};
  }
};

/// A policy of its own, on one device.
struct Policy {
  static int shards() { return 1; }
  static int first_shard() { return 0; }
  static int all_shards() { return 1; }
  static int threads_each() { return 1; }
  static parallel::Place place(int) { return {}; }
  static char const* name() { return "own"; }
  static char const* engine() { return "self"; }

  template <class Model, class Optimizer>
  class Session
#if !defined(CASE_no_base)
      : public parallel::SessionBase<Session<Model, Optimizer>, parallel::Replica<Model>, Optimizer>
#endif
  {
   public:
    using DeviceReplica = parallel::Replica<Model>;
#if !defined(CASE_no_constructor)
    Session(Policy& policy, Model const& model, nn::ParameterLayout const& layout, std::span<float const> values)
        : replica_(model, layout, policy.place(0)), state_(layout) {
      replica_.set_values(values);
    }
#endif
#if !defined(CASE_no_micro_step)
    template <class Batch>
    void micro_step(std::span<Batch const> batches, parallel::MicroStep const& step) {
      replica_.run_shards(batches, step);
    }
#endif
#if !defined(CASE_no_update)
    nn::Loss<HostSpace> update(Optimizer const& optimizer, parallel::UpdateSettings const& settings) {
      state_.update(optimizer, replica_, replica_.loss(), settings);
      return replica_.read_loss();
    }
#endif
#if defined(CASE_no_rehearsal)
    void rehearse() {}
#endif
#if !defined(CASE_no_replicas)
    template <class F>
    void for_each_shard(F&& f) {
      replica_.for_shards(0, f);
    }
#endif
#if !defined(CASE_no_base)
    void all_reduce(std::span<double>) override {}
    void synchronize_buffers() override {}
    void restore(parallel::SessionState& state) override { replica_.set_values(state.values()); }
#if !defined(CASE_abstract)
    bool stop_requested() override { return false; }
#endif
    parallel::PhaseSeconds take_phases() override { return replica_.device().take_phases(); }
    parallel::SessionReport report() override { return {}; }
#endif

   private:
    friend class parallel::SessionBase<Session, DeviceReplica, Optimizer>;
    [[nodiscard]] DeviceReplica& first() noexcept { return replica_; }
    [[nodiscard]] DeviceReplica const& first() const noexcept { return replica_; }

    DeviceReplica replica_;
    parallel::OptimizerState<Optimizer, HostSpace> state_;
  };
};

double norm() {
  Trainer trainer{Model{}, optim::SGD{}, Policy{}};
  return trainer.gradient_norm();
}
