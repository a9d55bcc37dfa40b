// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/timeline.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/device_facts.hpp>
#include <lockstep/parallel/device_work.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

class Agreement;

/// Parts of a loss by name.
using LossParts = std::vector<std::pair<std::string, nn::Loss<HostSpace>>>;

/// The part of a session that does not depend on the types of model, optimizer and batch. Trainer code between steps
/// uses it, and compiles once per program. SessionBase implements all functions except those that only a policy knows.
/// Functions that concern one process have a default here.
class AnySession {
 public:
  /// Properties of the optimizer that a session runs.
  struct Kind {
    std::size_t states = 0;    ///< arenas that the optimizer keeps in addition to the parameters
    std::string optimizer;     ///< its name(), if it has one
    bool averages = false;     ///< whether the last state holds the difference between parameters and their averages
    bool scales_loss = false;  ///< whether activations are float16
    bool on_host = true;       ///< whether replicas compute on the CPU
  };
  AnySession(AnySession const&) = delete;
  AnySession& operator=(AnySession const&) = delete;

  /// Returns the properties of the optimizer and the replicas.
  [[nodiscard]] Kind const& kind() const noexcept { return kind_; }
  /// Sets the optimizer's name in checkpoints, if it depends on the parameters as that of optim::Partitioned.
  void set_optimizer_name(std::string name) noexcept { kind_.optimizer = std::move(name); }

  // ---- processes

  /// Sums numbers over all processes, in place.   @collective with several processes
  virtual void all_reduce(std::span<double> numbers) = 0;
  /// Copies the string of rank `root` to all ranks; one process does nothing.   @collective with several processes
  virtual void broadcast([[maybe_unused]] std::string& text, [[maybe_unused]] int root) {}
  /// Checks that all ranks have equal settings; one process does nothing.
  /// @collective with several processes   @throws CollectiveMismatch on all ranks if one of them has another value
  virtual void check_agreement(Agreement const&) {}
  /// Compares the bits of all replicas' parameters after `step`; a single replica does nothing.
  /// @collective with several processes   @throws CollectiveMismatch if they differ
  virtual void check_replicas([[maybe_unused]] Index step) {}

  // ---- state that is saved and restored

  /// Returns the first replica's parameters, on the host.
  [[nodiscard]] virtual std::span<float const> values() const = 0;
  /// Returns the first replica's buffers, on the host.
  [[nodiscard]] virtual std::span<float const> buffers() const = 0;
  /// Sets the parameters of all replicas.
  virtual void set_values(std::span<float const> values) = 0;
  /// Sets the buffers of all replicas.
  virtual void set_buffers(std::span<float const> buffers) = 0;
  /// Makes the buffers of all replicas equal, according to the policy.   @collective with several processes
  virtual void synchronize_buffers() = 0;
  /// Returns the optimizer's moment i on the host, valid until the next call or step. It may end after the layout's
  /// `learned_size()`: all later parameters are frozen, and have no moments.   @collective if shards_moments()
  [[nodiscard]] virtual std::span<float const> moment(std::size_t i) = 0;
  /// Returns whether a whole moment needs all ranks; false by default.
  [[nodiscard]] virtual bool shards_moments() const noexcept { return false; }
  /// Restores the state of a checkpoint; rank 0's state on all ranks.   @collective with several processes
  virtual void restore(SessionState& state) = 0;

  // ---- results of the last step

  /// Returns whether a process requested a stop with its last micro-step. Equal on all processes after an update.
  [[nodiscard]] virtual bool stop_requested() = 0;
  /// Returns whether the last update was skipped because measured gradients are not finite. Equal on all processes.
  [[nodiscard]] virtual bool skipped() = 0;
  /// Returns the mean gradient's norm before clipping, or 0 if the last update did not measure it. Equal on all
  /// processes.
  [[nodiscard]] virtual double gradient_norm() = 0;
  /// Sets the entry of each device of this process to the parts of its last step's loss that the model names by
  /// nn::named_loss. Waits for the devices. Does nothing by default.
  virtual void read_loss_parts([[maybe_unused]] std::span<LossParts> devices) {}
  /// Sets the entries of devices of this process whose loss is not finite to 1.
  virtual void mark_not_finite(std::span<double> devices) = 0;

  // ---- settings of the replicas

  /// Returns the loss scale, equal on all replicas; empty without loss scaling. Waits for the device.
  [[nodiscard]] virtual optim::LossScaler::State loss_scale() = 0;
  /// Sets the loss scale of all replicas; does nothing without loss scaling.
  virtual void set_loss_scale(optim::LossScaler::State const& state) = 0;
  /// Returns rank 0's choice of GEMM algorithms by timing, for the products of its first device so far. Empty if there
  /// is no choice.   @collective with several processes
  [[nodiscard]] virtual std::string choose_gemm_algorithms(int rank) = 0;
  /// Applies the choice on all devices.
  virtual void set_gemm_algorithms(std::string const& choices) = 0;

  // ---- times and reports

  /// Makes each device of this process record into its timeline, and the session's waits into `waits`. No timelines and
  /// a null pointer end the recording.
  virtual void trace(std::span<Timeline* const> devices, Timeline* waits) = 0;
  /// Returns the seconds of each phase since the last call.
  [[nodiscard]] virtual PhaseSeconds take_phases() = 0;
  /// Returns the work of the first device's passes since the last call; empty on the CPU. Waits for the device.
  [[nodiscard]] virtual DeviceWork take_work() = 0;
  /// Returns the facts about the first device and its passes so far; empty on the CPU, which is the default.
  [[nodiscard]] virtual DeviceFacts device_facts();
  /// Returns facts for the run record.   @collective with several processes
  [[nodiscard]] virtual SessionReport report() = 0;

 protected:
  /// Stores the properties; for derived classes.
  explicit AnySession(Kind kind);
  virtual ~AnySession() = default;

 private:
  Kind kind_;
};

/// Any batch, for the concepts below.
struct AnyBatch {};
/// Function of any replica, for the concepts below.
struct AnyReplicaVisitor {
  /// Does nothing.
  template <class Replica>
  void operator()(int, Replica&) const {}
};

/// Requires a class that derives from AnySession and implements all of its functions; SessionBase has most of them.
template <class Candidate>
concept ImplementsAnySession = std::derived_from<Candidate, AnySession> && !std::is_abstract_v<Candidate>;

/// Requires a constructor from the policy, the model, its layout and its first values, which makes the replicas. With
/// `spans_ranks`, values may be empty on other ranks than 0, whose values all ranks receive.
template <class Candidate, class Policy, class Model>
concept MakesReplicas =
    std::is_constructible_v<Candidate, Policy&, Model const&, nn::ParameterLayout const&, std::span<float const>>;

/// Requires the type DeviceReplica, and `for_each_shard(f)`, which calls f(shard, replica) for each shard of this
/// process, on the threads of the shard's device.
template <class Candidate>
concept VisitsReplicas = requires(Candidate& session, AnyReplicaVisitor f) {
  typename Candidate::DeviceReplica::Space;
  session.for_each_shard(f);
};

/// Requires `micro_step(batches, step) -> void`, which runs forward and backward of one batch per shard of this
/// process.
/// @collective with several processes, if `step.last`
template <class Candidate>
concept RunsMicroSteps = requires(Candidate& session, std::span<AnyBatch const> batches, MicroStep const& step) {
  { session.micro_step(batches, step) } -> std::same_as<void>;
};

/// Requires `update(optimizer, settings) -> nn::Loss<HostSpace>`, which applies the gradients of all micro-steps since
/// the first, and returns the step's loss over all shards of all processes.   @collective with several processes
template <class Candidate, class Optimizer>
concept UpdatesParameters = requires(Candidate& session, Optimizer const& optimizer, UpdateSettings const& settings) {
  { session.update(optimizer, settings) } -> std::same_as<nn::Loss<HostSpace>>;
};

/// Requires `rehearse(batches, steps, makes) -> Index`, which prepares the passes of micro-steps with such batches
/// before the first step and returns the number of batches whose passes are recorded. SessionBase defines it.
template <class Candidate>
concept RehearsesPasses = requires(Candidate& session, std::span<AnyBatch const> batches,
                                   std::span<MicroStep const> steps, Rehearse makes) {
  { session.rehearse(batches, steps, makes) } -> std::same_as<Index>;
};

/// Requires two constants, which SessionBase defines as false. `spans_ranks`: each rank has a session; ranks compare
/// their settings and start from rank 0's values. `update_copies_parameters`: an update copies the first replica's
/// parameters to all, so that replicas are compared before it.
template <class Candidate>
concept DescribesReplicas = requires {
  { Candidate::spans_ranks } -> std::convertible_to<bool>;
  { Candidate::update_copies_parameters } -> std::convertible_to<bool>;
};

/// A policy's replicas of a model, with the optimizer's state: all that a trainer asks of a policy. The policy's
/// `Session<Model, Optimizer>` is such a type.
template <class Candidate, class Policy, class Model, class Optimizer>
concept Session = ImplementsAnySession<Candidate> && VisitsReplicas<Candidate> && RunsMicroSteps<Candidate> &&
    UpdatesParameters<Candidate, Optimizer> && RehearsesPasses<Candidate> && DescribesReplicas<Candidate> &&
    MakesReplicas<Candidate, Policy, Model>;

/// Returns true if S is a Session of the policy; otherwise a static_assert names what it lacks.
template <class Candidate, class Policy, class Model, class Optimizer>
consteval bool is_session() {
  static_assert(
      std::derived_from<Candidate, AnySession>,
      "Lockstep: the policy's Session does not derive from parallel::SessionBase<Session, Replica, Optimizer>, "
      "which implements parallel::AnySession; see docs/reference/parallel.md");
  if constexpr (std::derived_from<Candidate, AnySession>) {
    static_assert(VisitsReplicas<Candidate>,
                  "Lockstep: the policy's Session has no DeviceReplica, or no for_each_shard(f), which calls f(shard, "
                  "replica); see docs/reference/parallel.md");
    static_assert(RunsMicroSteps<Candidate>,
                  "Lockstep: the policy's Session has no micro_step(std::span<Batch const>, MicroStep const&) -> void, "
                  "a template over the batch's type; see docs/reference/parallel.md");
    static_assert(UpdatesParameters<Candidate, Optimizer>,
                  "Lockstep: the policy's Session has no update(optimizer, UpdateSettings const&) -> "
                  "nn::Loss<HostSpace>; see docs/reference/parallel.md");
    static_assert(RehearsesPasses<Candidate>,
                  "Lockstep: the policy's Session has no rehearse(std::span<Batch const>, std::span<MicroStep const>, "
                  "Rehearse) -> Index, which parallel::SessionBase defines; see docs/reference/parallel.md");
    static_assert(DescribesReplicas<Candidate>,
                  "Lockstep: the policy's Session has no constants spans_ranks and update_copies_parameters, which "
                  "parallel::SessionBase defines; see docs/reference/parallel.md");
    static_assert(!std::is_abstract_v<Candidate>,
                  "Lockstep: the policy's Session does not override a function of parallel::AnySession: all_reduce, "
                  "synchronize_buffers, restore, stop_requested, take_phases or report; see "
                  "docs/reference/parallel.md");
    static_assert(std::is_abstract_v<Candidate> || MakesReplicas<Candidate, Policy, Model>,
                  "Lockstep: the policy's Session has no constructor (policy, model, layout, values); see "
                  "docs/reference/parallel.md");
  }
  return true;
}

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/session.ipp>
#endif
