// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <lockstep/core/timeline.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/parallel/device_work.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/trace/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Interface of a session, independent of model, optimizer and policy. Code on top of it compiles once per program. Its
/// functions do the work of the session's functions of equal name, and are collective if those are, except as
/// documented.
class AnySession {
 public:
  struct Kind {
    std::size_t states = 0;  ///< arenas that the optimizer keeps in addition to the parameters
    std::string optimizer;   ///< its name(), if it has one
    bool averages = false;   ///< whether the last state holds the difference between parameters and their averages
    bool scales_loss = false;
    bool on_host = true;
  };
  AnySession(AnySession const&) = delete;
  AnySession& operator=(AnySession const&) = delete;

  [[nodiscard]] Kind const& kind() const noexcept { return kind_; }

  virtual void all_reduce(std::span<double> numbers) = 0;
  virtual void broadcast(std::string& text, int root) = 0;  ///< does nothing with one process

  [[nodiscard]] virtual std::span<float const> values() const = 0;
  [[nodiscard]] virtual std::span<float const> buffers() const = 0;
  virtual void set_values(std::span<float const> values) = 0;    ///< for all replicas
  virtual void set_buffers(std::span<float const> buffers) = 0;  ///< for all replicas
  [[nodiscard]] virtual float const* moment(std::size_t i) = 0;
  [[nodiscard]] virtual bool shards_moments() = 0;
  virtual void restore(parallel::SessionState& state) = 0;

  [[nodiscard]] virtual bool stop_requested() = 0;
  [[nodiscard]] virtual bool skipped() = 0;
  [[nodiscard]] virtual double gradient_norm() = 0;
  /// Sets the entries of devices of this process whose loss is not finite to 1.
  virtual void mark_not_finite(std::span<double> devices) = 0;

  /// Returns the loss scale, equal on all replicas; empty without loss scaling. Waits for the device.
  [[nodiscard]] virtual optim::LossScaler::State loss_scale() = 0;
  virtual void set_loss_scale(optim::LossScaler::State const& state) = 0;

  /// Returns rank 0's choice of GEMM algorithms by timing, for the products of its first device so far. Empty if there
  /// is no choice.   @collective with DistributedDataParallel
  [[nodiscard]] virtual std::string choose_gemm_algorithms(int rank) = 0;
  /// Applies the choice on all devices.
  virtual void set_gemm_algorithms(std::string const& choices) = 0;

  /// Makes each device record into its timeline of the trace, and the session into the training thread's. A null
  /// pointer ends the recording.
  virtual void trace(Trace* trace) = 0;
  [[nodiscard]] virtual parallel::PhaseSeconds take_phases() = 0;
  /// Returns the work of the first device's passes since the last call; empty on the CPU. Waits for the device.
  [[nodiscard]] virtual parallel::DeviceWork take_work() = 0;
  [[nodiscard]] virtual parallel::SessionReport report() = 0;

 protected:
  explicit AnySession(Kind kind) : kind_(std::move(kind)) {}
  ~AnySession() = default;

 private:
  Kind kind_;
};

/// Adapter from a concrete session, which must outlive it.
template <class Optimizer, class Session>
class SessionAdapter final : public AnySession {
  using Replica = typename Session::DeviceReplica;

 public:
  explicit SessionAdapter(Session& session)
      : AnySession({static_cast<std::size_t>(Optimizer::states), optim::name_of<Optimizer>(),
                    optim::averages<Optimizer>, Replica::scales_loss, Replica::Space::host_accessible}),
        session_(session) {}

  void all_reduce(std::span<double> numbers) override { session_.all_reduce(numbers); }
  void broadcast([[maybe_unused]] std::string& text, [[maybe_unused]] int root) override {
    if constexpr (requires { session_.broadcast(text, root); }) session_.broadcast(text, root);
  }

  std::span<float const> values() const override { return session_.values(); }
  std::span<float const> buffers() const override { return session_.buffers(); }
  void set_values(std::span<float const> values) override {
    session_.for_each_shard([&](int, Replica& replica) {
      replica.device().enter();
      replica.set_values(values);
    });
  }
  void set_buffers(std::span<float const> buffers) override {
    session_.for_each_shard([&](int, Replica& replica) {
      replica.device().enter();
      replica.set_buffers(buffers);
    });
  }
  float const* moment(std::size_t i) override { return session_.moment(i); }
  bool shards_moments() override {
    if constexpr (requires { session_.shards_moments(); })
      return session_.shards_moments();
    else
      return false;
  }
  void restore(parallel::SessionState& state) override { session_.restore(state); }

  bool stop_requested() override { return session_.stop_requested(); }
  bool skipped() override { return session_.skipped(); }
  double gradient_norm() override { return session_.gradient_norm(); }
  void mark_not_finite(std::span<double> devices) override {
    session_.for_each_shard([&](int shard, Replica& replica) {
      if (!std::isfinite(replica.read_loss().sum)) devices[static_cast<std::size_t>(shard / replica.shards())] = 1;
    });
  }

  optim::LossScaler::State loss_scale() override {
    optim::LossScaler::State state;
    if constexpr (Replica::scales_loss)
      session_.for_each_shard([&](int shard, Replica& replica) {
        if (shard == 0) state = replica.loss_scale().get(replica.device());
      });
    return state;
  }
  void set_loss_scale([[maybe_unused]] optim::LossScaler::State const& state) override {
    if constexpr (Replica::scales_loss)
      session_.for_each_shard([&](int, Replica& replica) { replica.loss_scale().set(replica.device(), state); });
  }

  std::string choose_gemm_algorithms([[maybe_unused]] int rank) override {
    std::string choices;
    if constexpr (chooses) {
      session_.for_each_shard([&](int shard, Replica& replica) {
        if (rank == 0 && shard == 0) choices = replica.device().choose_gemm_algorithms();
      });
      broadcast(choices, 0);
    }
    return choices;
  }
  void set_gemm_algorithms([[maybe_unused]] std::string const& choices) override {
    if constexpr (chooses)
      if (!choices.empty())
        session_.for_each_shard([&](int, Replica& replica) { replica.device().set_gemm_algorithms(choices); });
  }

  void trace(Trace* trace) override {
    session_.for_each_shard([&](int shard, Replica& replica) {
      replica.trace(trace ? &trace->device(shard / replica.shards()) : nullptr);
    });
    Timeline* const training = trace ? &trace->training() : nullptr;
    if constexpr (requires { session_.trace(training); }) session_.trace(training);
  }
  parallel::PhaseSeconds take_phases() override { return session_.take_phases(); }
  parallel::DeviceWork take_work() override {
    parallel::DeviceWork work;
    if constexpr (!Replica::Space::host_accessible)
      session_.for_each_shard([&](int shard, Replica& replica) {
        if (auto const taken = replica.take_work(); shard == 0) work = taken;
      });
    return work;
  }
  parallel::SessionReport report() override { return session_.report(); }

 private:
  static constexpr bool chooses = requires(Replica & replica) { replica.device().choose_gemm_algorithms(); };

  Session& session_;
};

}}}  // namespace lockstep::train::detail
