// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Implements the functions of AnySession that follow from replicas and optimizer state. `Session` derives from this
/// class, is its friend, and has `for_each_shard(f)`, `first()`, which returns the first replica, and `state_`, the
/// OptimizerState. It overrides the other functions, and those whose default does not fit.
template <class Session, class Replica, class Optimizer>
class SessionBase : public AnySession {
 public:
  using DeviceReplica = Replica;
  static constexpr bool spans_ranks = false;
  static constexpr bool update_copies_parameters = false;

  [[nodiscard]] std::span<float const> values() const override { return session().first().values(); }
  [[nodiscard]] std::span<float const> buffers() const override { return session().first().buffers(); }
  [[gnu::cold]] void set_values(std::span<float const> values) override {
    session().for_each_shard([&](int, Replica& replica) {
      replica.device().enter();
      replica.set_values(values);
    });
  }
  [[gnu::cold]] void set_buffers(std::span<float const> buffers) override {
    session().for_each_shard([&](int, Replica& replica) {
      replica.device().enter();
      replica.set_buffers(buffers);
    });
  }
  [[nodiscard]] float const* moment(std::size_t i) override {
    return session().state_.moment(i, session().first().device()).data();
  }

  [[nodiscard]] bool skipped() override { return session().state_.skipped(session().first().device()); }
  [[nodiscard]] double gradient_norm() override { return session().state_.gradient_norm(session().first().device()); }
  [[gnu::cold]] void mark_not_finite(std::span<double> devices) override {
    session().for_each_shard([&](int shard, Replica& replica) {
      if (!std::isfinite(replica.read_loss().sum)) devices[static_cast<std::size_t>(shard / replica.shards())] = 1;
    });
  }

  [[nodiscard]] optim::LossScaler::State loss_scale() override {
    optim::LossScaler::State state;
    if constexpr (Replica::scales_loss)
      session().for_each_shard([&](int shard, Replica& replica) {
        if (shard == 0) state = replica.loss_scale().get(replica.device());
      });
    return state;
  }
  void set_loss_scale([[maybe_unused]] optim::LossScaler::State const& state) override {
    if constexpr (Replica::scales_loss)
      session().for_each_shard([&](int, Replica& replica) { replica.loss_scale().set(replica.device(), state); });
  }
  [[nodiscard]] std::string choose_gemm_algorithms([[maybe_unused]] int rank) override {
    std::string choices;
    if constexpr (!Replica::Space::host_accessible) {
      session().for_each_shard([&](int shard, Replica& replica) {
        if (rank == 0 && shard == 0) choices = replica.device().choose_gemm_algorithms();
      });
      broadcast(choices, 0);
    }
    return choices;
  }
  void set_gemm_algorithms([[maybe_unused]] std::string const& choices) override {
    if constexpr (!Replica::Space::host_accessible)
      if (!choices.empty())
        session().for_each_shard([&](int, Replica& replica) { replica.device().set_gemm_algorithms(choices); });
  }

  [[gnu::cold]] void trace(std::span<Timeline* const> devices, Timeline*) override {
    session().for_each_shard([&](int shard, Replica& replica) {
      replica.trace(devices.empty() ? nullptr : devices[static_cast<std::size_t>(shard / replica.shards())]);
    });
  }
  [[nodiscard]] DeviceWork take_work() override {
    DeviceWork work;
    if constexpr (!Replica::Space::host_accessible)
      session().for_each_shard([&](int shard, Replica& replica) {
        if (auto const taken = replica.take_work(); shard == 0) work = taken;
      });
    return work;
  }

 private:
  friend Session;
  SessionBase()
      : AnySession({static_cast<std::size_t>(Optimizer::states), optim::name_of<Optimizer>(),
                    optim::averages<Optimizer>, Replica::scales_loss, Replica::Space::host_accessible}) {}

  [[nodiscard]] Session& session() noexcept { return static_cast<Session&>(*this); }
  [[nodiscard]] Session const& session() const noexcept { return static_cast<Session const&>(*this); }
};

}}}  // namespace lockstep::parallel
