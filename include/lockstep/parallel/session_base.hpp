// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/parallel/detail/optimizer_moments.hpp>
#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

namespace detail {

/// Part of a SessionBase that does not depend on the types of the model, the optimizer and the session. The library
/// instantiates it for float on the host.
template <class Replica>
class ReplicaSession : public AnySession {
 public:
  using Space = typename Replica::Space;

  [[nodiscard]] std::span<float const> values() const override { return first_replica().values(); }
  [[nodiscard]] std::span<float const> buffers() const override { return first_replica().buffers(); }
  void set_values(std::span<float const> values) override;
  void set_buffers(std::span<float const> buffers) override;
  [[nodiscard]] std::span<float const> moment(std::size_t i) override;

  [[nodiscard]] bool skipped() override;
  [[nodiscard]] double gradient_norm() override;
  void read_loss_parts(std::span<LossParts> devices) override;
  void mark_not_finite(std::span<double> devices) override;

  [[nodiscard]] optim::LossScaler::State loss_scale() override;
  void set_loss_scale(optim::LossScaler::State const& state) override;
  [[nodiscard]] std::string choose_gemm_algorithms(int rank) override;
  void set_gemm_algorithms(std::string const& choices) override;

  void trace(std::span<Timeline* const> devices, Timeline*) override;
  [[nodiscard]] DeviceWork take_work() override;
  [[nodiscard]] DeviceFacts device_facts() override;

 protected:
  /// A function of a shard's number and its replica.
  struct Visitor {
    void (*call)(void const* self, int shard, Replica& replica);
    void const* self;
  };

  explicit ReplicaSession(Kind kind) : AnySession(std::move(kind)) {}
  ~ReplicaSession() override = default;

 private:
  /// Calls the visitor for each local shard, on the threads of the shard's device.
  virtual void visit_shards(Visitor visitor) = 0;
  [[nodiscard]] virtual Replica& first_replica() const = 0;
  [[nodiscard]] virtual OptimizerMoments<Space>& moments() = 0;

  template <class Function>
  void each(Function const& f) {
    visit_shards(
        {[](void const* self, int shard, Replica& replica) { (*static_cast<Function const*>(self))(shard, replica); },
         &f});
  }
};

template <class Replica>
[[gnu::cold]] void ReplicaSession<Replica>::set_values(std::span<float const> values) {
  each([&](int, Replica& replica) {
    replica.device().enter();
    replica.set_values(values);
  });
}

template <class Replica>
[[gnu::cold]] void ReplicaSession<Replica>::set_buffers(std::span<float const> buffers) {
  each([&](int, Replica& replica) {
    replica.device().enter();
    replica.set_buffers(buffers);
  });
}

template <class Replica>
std::span<float const> ReplicaSession<Replica>::moment(std::size_t i) {
  return moments().moment(i, first_replica().device());
}

template <class Replica>
bool ReplicaSession<Replica>::skipped() {
  return moments().skipped(first_replica().device());
}

template <class Replica>
double ReplicaSession<Replica>::gradient_norm() {
  return moments().gradient_norm(first_replica().device());
}

template <class Replica>
[[gnu::cold]] void ReplicaSession<Replica>::read_loss_parts(std::span<LossParts> devices) {
  each([&](int shard, Replica& replica) {
    if (shard % replica.shards() > 0) return;  // a replica's parts are sums over its shards
    auto& parts = devices[static_cast<std::size_t>(shard / replica.shards())];
    for (auto const& name : replica.loss_part_names()) parts.emplace_back(name, replica.read_loss_part(parts.size()));
  });
}

template <class Replica>
[[gnu::cold]] void ReplicaSession<Replica>::mark_not_finite(std::span<double> devices) {
  each([&](int shard, Replica& replica) {
    if (!std::isfinite(replica.read_loss().sum)) devices[static_cast<std::size_t>(shard / replica.shards())] = 1;
  });
}

template <class Replica>
optim::LossScaler::State ReplicaSession<Replica>::loss_scale() {
  optim::LossScaler::State state;
  if constexpr (Replica::scales_loss)
    each([&](int shard, Replica& replica) {
      if (shard == 0) state = replica.loss_scale().get(replica.device());
    });
  return state;
}

template <class Replica>
void ReplicaSession<Replica>::set_loss_scale([[maybe_unused]] optim::LossScaler::State const& state) {
  if constexpr (Replica::scales_loss)
    each([&](int, Replica& replica) { replica.loss_scale().set(replica.device(), state); });
}

template <class Replica>
std::string ReplicaSession<Replica>::choose_gemm_algorithms([[maybe_unused]] int rank) {
  std::string choices;
  if constexpr (!Space::host_accessible) {
    each([&](int shard, Replica& replica) {
      if (rank == 0 && shard == 0) choices = replica.device().choose_gemm_algorithms();
    });
    this->broadcast(choices, 0);
  }
  return choices;
}

template <class Replica>
void ReplicaSession<Replica>::set_gemm_algorithms([[maybe_unused]] std::string const& choices) {
  if constexpr (!Space::host_accessible)
    if (!choices.empty()) each([&](int, Replica& replica) { replica.device().set_gemm_algorithms(choices); });
}

template <class Replica>
[[gnu::cold]] void ReplicaSession<Replica>::trace(std::span<Timeline* const> devices, Timeline*) {
  each([&](int shard, Replica& replica) {
    replica.trace(devices.empty() ? nullptr : devices[static_cast<std::size_t>(shard / replica.shards())]);
  });
}

template <class Replica>
DeviceWork ReplicaSession<Replica>::take_work() {
  DeviceWork work;
  if constexpr (!Space::host_accessible)
    each([&](int shard, Replica& replica) {
      if (auto const taken = replica.take_work(); shard == 0) work = taken;
    });
  return work;
}

template <class Replica>
[[gnu::cold]] DeviceFacts ReplicaSession<Replica>::device_facts() {
  DeviceFacts facts;
  if constexpr (!Space::host_accessible)
    each([&](int shard, Replica& replica) {
      if (shard == 0) facts = replica.device_facts();
    });
  return facts;
}

}  // namespace detail

/// Implements the functions of AnySession that follow from replicas and optimizer state. `Session` derives from this
/// class, is its friend, and has `for_each_shard(f)`, `first()`, which returns the first replica, and `state_`, the
/// OptimizerState. It overrides the other functions, and those whose default does not fit.
template <class Session, class Replica, class Optimizer>
class SessionBase : public detail::ReplicaSession<typename Replica::Base> {
  using Base = detail::ReplicaSession<typename Replica::Base>;

 public:
  using DeviceReplica = Replica;                           ///< type of a replica
  static constexpr bool spans_ranks = false;               ///< default: one process, so no settings are compared
  static constexpr bool update_copies_parameters = false;  ///< default: replicas are compared after an update

  /// Makes memory, plans and recordings on GPUs for micro-steps with a batch of each of these shapes per shard, before
  /// the first step: see Replica::rehearse. `steps` are the kinds of micro-steps, in a step's order. Not collective.
  /// @returns the number of shapes whose passes are recorded on the first device; 0 on the host
  template <class Batch>
  [[nodiscard, gnu::cold]] Index rehearse(std::span<Batch const> batches, std::span<MicroStep const> steps,
                                          Rehearse makes = Rehearse::recordings) {
    Index recorded = 0;
    static_cast<Session&>(*this).for_each_shard([&](int shard, Replica& replica) {
      if (shard % replica.shards() > 0) return;  // shards in turns run equal passes
      std::vector<typename Replica::PassKind> kinds;
      for (auto const& step : steps) kinds.push_back(static_cast<Session&>(*this).pass_kind(step));
      auto const count = replica.rehearse(batches, kinds, makes);
      if (shard == 0) recorded = count;
    });
    return recorded;
  }

 protected:
  /// Returns the kind of pass that a micro-step runs, with the sinks with which it is recorded. No sinks by default.
  [[nodiscard]] auto pass_kind(MicroStep const& step) const { return typename Replica::PassKind{.first = step.first}; }

 private:
  friend Session;
  SessionBase()
      : Base({static_cast<std::size_t>(Optimizer::states), optim::name_of<Optimizer>(), optim::averages<Optimizer>,
              Replica::scales_loss, Replica::Space::host_accessible}) {}

  void visit_shards(typename Base::Visitor visitor) final {
    static_cast<Session&>(*this).for_each_shard(
        [visitor](int shard, Replica& replica) { visitor.call(visitor.self, shard, replica); });
  }
  [[nodiscard]] typename Replica::Base& first_replica() const final {
    return const_cast<Session&>(static_cast<Session const&>(*this)).first();
  }
  [[nodiscard]] detail::OptimizerMoments<typename Replica::Space>& moments() final {
    return static_cast<Session&>(*this).state_;
  }
};

}}}  // namespace lockstep::parallel
