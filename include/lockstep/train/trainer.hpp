// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica.hpp>
#include <lockstep/train/batch_feed.hpp>
#include <lockstep/train/checkpoint.hpp>
#include <lockstep/train/detail/agreement_of.hpp>
#include <lockstep/train/detail/any_loader.hpp>
#include <lockstep/train/detail/any_session.hpp>
#include <lockstep/train/detail/batches_of.hpp>
#include <lockstep/train/detail/check_evaluation.hpp>
#include <lockstep/train/detail/check_learning.hpp>
#include <lockstep/train/detail/check_options.hpp>
#include <lockstep/train/detail/compare_replicas.hpp>
#include <lockstep/train/detail/evaluate.hpp>
#include <lockstep/train/detail/fit_plan.hpp>
#include <lockstep/train/detail/fits.hpp>
#include <lockstep/train/detail/naming_samples.hpp>
#include <lockstep/train/detail/one_thread.hpp>
#include <lockstep/train/detail/record_of.hpp>
#include <lockstep/train/detail/running_fit.hpp>
#include <lockstep/train/detail/take_parameters.hpp>
#include <lockstep/train/detail/trainer_parts.hpp>
#include <lockstep/train/detail/where_not_finite.hpp>
#include <lockstep/train/detail/with_averages.hpp>
#include <lockstep/train/evaluation.hpp>
#include <lockstep/train/fit_options.hpp>
#include <lockstep/train/observer.hpp>
#include <lockstep/train/run_record.hpp>
#include <lockstep/train/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Trains a model of the user's own type under a policy: which of `parallel::SingleDevice`, `DataParallel` and
/// `DistributedDataParallel` it is changes nothing else in the program.
/// With a DistributedDataParallel all ranks construct and fit alike; observers belong to one of them. Used by one
/// thread at a time: while one is in a call that computes, loads or saves, those of others throw ConfigError.
/// @throws what the loader, the model, the communicator or an observer throws; parameters are those of the last whole
/// step
template <class Model, class Optimizer, class Policy>
class Trainer {
  static_assert(nn::HasParameters<Model>,
                "Lockstep: the model has no visit(each) that names its layers and parameters in forward order; see "
                "docs/reference/model.md");
  static_assert(
      optim::Optimizer<Optimizer>,
      "Lockstep: the second argument is no optimizer: it has no `states`, no `learning_rate` or no step(stream, slice, "
      "scalars); see docs/reference/optimizer.md");
  static_assert(
      parallel::ParallelPolicy<Policy>,
      "Lockstep: the third argument is no parallel policy (SingleDevice, DataParallel, DistributedDataParallel); "
      "see docs/reference/parallel.md");

  using Session = typename Policy::template Session<Model, Optimizer>;

 public:
  /// Where it computes.
  using Space = typename Session::DeviceReplica::Space;

  /// `seed` starts the parameters and keys all random operations.
  Trainer(Model model, Optimizer optimizer, Policy policy, std::uint64_t seed = 0)
      : model_(std::move(model)),
        optimizer_(std::move(optimizer)),
        policy_(std::move(policy)),
        layout_(nn::ParameterLayout::of(model_)),
        session_(policy_, model_, layout_, nn::initial_values(layout_, seed, policy_.threads_each())),
        seed_(seed) {
    if constexpr (train::detail::agrees<Session>)
      session_.agree(train::detail::agreement_of(optimizer_, layout_, seed));
  }
  // The session refers to model, policy and layout.
  Trainer(Trainer const&) = delete;
  Trainer& operator=(Trainer const&) = delete;

  /// Goes on from parameters and buffers that were saved by name, such as those of a run before; what the optimizer
  /// keeps beside them stays as it is, at first zero, but that what changes is its own average. Returns the texts that
  /// were saved with them. `names` says which are read, the others staying as they are, and how the file calls them: a
  /// prefix, such as "encoder.", or a function of the model's names; `in_file` stands in the file for a prefix: "" for
  /// an encoder that was saved by itself.
  /// @collective with DistributedDataParallel: every rank loads the same
  /// @throws DataError when the file is not one of this model's parameters, CollectiveMismatch when ranks loaded
  /// others, ConfigError when nothing of the model is named, or within an evaluation by averages
  train::Metadata load(std::string const& path, train::NamesInFile const& names = {}) {
    auto const turn = call();
    std::array<double, 1> here{};
    session_.all_reduce(here);  // once all are here, the first rank has written what it was told to save before
    train::Metadata metadata;
    change_numbers("load", [&](std::span<float> values, std::span<float> buffers) {
      metadata = train::load_parameters(path, layout_, values, buffers, names);
    });
    if constexpr (requires { session_.check_replicas(0); }) session_.check_replicas(0);
    return metadata;
  }
  train::Metadata load(std::string const& path, std::string_view prefix, std::string_view in_file) {
    return load(path, {prefix, in_file});
  }
  /// Takes the parameters and buffers of another trainer's model, by name: all, or those that begin with a `prefix`,
  /// such as "critic.", where they begin with `in_other` there. With a `share` below 1 each only goes that part of the
  /// way: of every step's parameters with 0.001, say, this becomes a moving average.
  /// @collective with DistributedDataParallel, where the optimizer is an optim::Averaged
  /// @throws ConfigError when the other model lacks one of the names, nothing of this one has the prefix or the share
  /// is not in [0, 1], or within an evaluation by averages, ShapeError when two shapes differ
  template <class AnyModel, class AnyOptimizer, class AnyPolicy>
  void take(Trainer<AnyModel, AnyOptimizer, AnyPolicy> const& other, std::string_view prefix, std::string_view in_other,
            double share = 1) {
    change_numbers("take", [&](std::span<float> values, std::span<float> buffers) {
      train::detail::take_parameters({other.layout(), other.values(), other.buffers()}, {layout_, values, buffers},
                                     prefix, in_other, share);
    });
  }
  template <class AnyModel, class AnyOptimizer, class AnyPolicy>
  void take(Trainer<AnyModel, AnyOptimizer, AnyPolicy> const& other, double share = 1) {
    take(other, {}, {}, share);
  }
  /// Saves parameters, buffers and texts for `load`, which waits for it on all ranks, and a Predictor, on the first
  /// rank.   @throws DataError
  void save(std::string const& path, train::Metadata const& metadata = {}) const {
    auto const turn = call();
    if (rank() == 0) train::save_parameters(path, layout_, values(), metadata, buffers());
  }

  /// Trains on all of the loader's samples, `options.epochs` times, and evaluates after each epoch, or as `options`
  /// say. A later fit goes on from the one before: with its parameters, the optimizer's moments and count of steps, and
  /// another order and other random numbers. Its schedule and its loss scale begin anew. Who asks by `options.stop`
  /// waits for the step under way, and for an evaluation that is due after it.
  /// @collective with DistributedDataParallel
  /// @throws ConfigError when one of `options` or of the optimizer's settings is out of range, the evaluation uses the
  /// same loader, `options` judge by a metric that it does not count, or patience or an observer needs evaluations that
  /// there are none of, or the warm-up is longer than the fit; DataError when checkpoints have no folder and none can
  /// be made, or an evaluation weighs nothing; Error when the loss, or a gradient that is clipped, is no finite number,
  /// or the loss leaves no parameter a gradient or has no weight
  template <class Loader, class Evaluation = train::NoEvaluation>
  train::RunRecord fit(Loader& loader, Evaluation const& evaluation = {}, FitOptions const& options = {}) {
    if constexpr (train::detail::fits<Model, typename Session::DeviceReplica, Loader, Evaluation>()) {
      auto const turn = call();
      return train(loader, evaluation, options);
    } else {
      return {};
    }
  }

  /// The same without evaluations.
  template <class Loader>
  train::RunRecord fit(Loader& loader, FitOptions const& options) {
    return fit(loader, train::NoEvaluation{}, options);
  }

  /// One step, of batches that the caller has, for a loop that `fit` is not: what a loader's next() returned, one
  /// batch, or a range of them; one for each of this process's devices or shards, or a multiple, whose gradients are
  /// summed. Random operations differ from step to step. Returns the loss of all ranks and devices.
  /// @collective with DistributedDataParallel
  /// @throws ConfigError when the number of batches or one of `options` is out of range, or the loader was not started
  /// with this rank's `split()`; Error when the loss, or a
  /// gradient that is clipped, is no finite number, or the first step leaves no parameter a gradient
  template <class Batches>
  nn::Loss<HostSpace> step(Batches const& batches, StepOptions const& options = {}) {
    auto const all = train::detail::batches_of(batches);
    using Batch = typename decltype(all)::value_type;
    if constexpr (train::detail::learns_from<Model, typename Session::DeviceReplica, Batch>()) {
      auto const turn = call();
      train::detail::check_step(options, optimizer_, all.size(), policy_.shards());
      train::detail::check_split(batches, split());
      return step_of(batches, std::span<Batch const>(all), options);
    } else {
      return {};
    }
  }

  /// Of the last step's mean gradient, before it was clipped, where it was; else 0. Alike on all ranks.
  [[nodiscard]] double gradient_norm() { return session_.gradient_norm(); }
  /// Compares the parameters, and what the optimizer keeps, of all ranks, bit for bit: for a loop of one's own.
  /// @collective with DistributedDataParallel   @throws CollectiveMismatch when they have parted; names the first
  void check_replicas() { train::detail::compare_replicas(session_, train::detail::Updates::leave_apart, done_.steps); }

  /// The mean loss and the metrics over all samples of the evaluation's loader, each counted once, in evaluation mode,
  /// with the averages of an optim::Averaged; of several evaluations one after the other, in one report.
  /// @param made told after each batch how many of this process's batches are evaluated, of how many
  /// @collective with DistributedDataParallel
  /// @throws DataError when there are no samples, or they weigh nothing, CollectiveMismatch when ranks have others,
  /// ConfigError when two of its numbers have one name
  template <class Evaluation>
  requires(train::is_evaluation<Evaluation> && !std::is_same_v<Evaluation, train::NoEvaluation>) train::EvaluationReport
      evaluate(Evaluation const& evaluation, train::StepsMade const& made = {}) {
    auto const turn = call();
    train::detail::check_names(train::detail::Counted(evaluation), "evaluate");
    if constexpr (train::detail::agrees<Session>) session_.agree(train::detail::agreement_of(evaluation));
    train::detail::WithAverages const averaged(any_session_, averages_in_place_);
    return evaluate_all(evaluation, made);
  }

  /// On the host: of a device, a copy that the next call overwrites.
  [[nodiscard]] std::span<float const> values() const { return session_.values(); }
  /// What the model keeps but does not learn, such as running statistics: the first device's, or this rank's.
  [[nodiscard]] std::span<float const> buffers() const { return session_.buffers(); }
  [[nodiscard]] nn::ParameterLayout const& layout() const noexcept { return layout_; }
  [[nodiscard]] Model const& model() const noexcept { return model_; }
  [[nodiscard]] Policy const& policy() const noexcept { return policy_; }
  /// Which part of a loader's batches this process trains on.
  [[nodiscard]] data::Split split() const { return {policy_.first_shard(), policy_.shards(), policy_.all_shards()}; }
  [[nodiscard]] int rank() const { return policy_.first_shard() / policy_.shards(); }
  [[nodiscard]] int ranks() const { return policy_.all_shards() / policy_.shards(); }
  /// What the rank `root` passes.   @collective with DistributedDataParallel
  [[nodiscard]] std::string broadcast(std::string text, int root) {
    if constexpr (requires { session_.broadcast(text, root); }) session_.broadcast(text, root);
    return text;
  }

 private:
  friend struct train::detail::TrainerParts;
  [[nodiscard]] train::detail::OneThread::Call call() const {
    return {user_, "Trainer", "have one of them make all calls, or take turns by a lock"};
  }
  template <class Evaluation>
  train::EvaluationReport evaluate_all(Evaluation const& evaluation, train::StepsMade const& made) {
    return train::detail::joined(evaluation, [&](std::string const& prefix, auto const& each) {
      return evaluate(prefix, each, train::detail::steps_of(prefix, each, split()), made);
    });
  }
  /// Over so many of its first steps.
  template <class Loader, class... Metrics>
  train::EvaluationReport evaluate(std::string const& prefix, train::Evaluation<Loader, Metrics...> const& evaluation,
                                   Index steps, train::StepsMade const& made = {}) {
    session_.share_buffers();
    start(evaluation.loader, 0, 0, 1);
    return train::detail::evaluate(session_, split(), prefix, evaluation, steps, made);
  }

  /// f(values, buffers) changes copies of them, which all replicas then take.
  template <class F>
  void change_numbers(char const* what, F const& f) {
    auto const turn = call();
    train::detail::TrainerParts::expect_values(*this, what);
    auto const copy = [](std::span<float const> from) { return std::vector<float>(from.begin(), from.end()); };
    auto values = copy(session_.values()), buffers = copy(session_.buffers());
    f(std::span<float>(values), std::span<float>(buffers));
    train::detail::set_numbers(any_session_, layout_, values, buffers);
  }
  /// From a micro-step to the end of an epoch; for a device, in memory that it reads by itself.
  template <class Loader>
  void start(Loader& loader, Index epoch, Index step, Index last_epoch) {
    if constexpr (!Space::host_accessible && requires(memory::AnyHostResource memory) { loader.use(memory); })
      loader.use(Session::DeviceReplica::batch_memory());
    loader.start(split(), epoch, step, last_epoch);
  }

  template <class Loader, class Evaluation>
  train::RunRecord train(Loader& loader, Evaluation const& evaluation, FitOptions const& options) {
    constexpr bool evaluates = !std::is_same_v<Evaluation, train::NoEvaluation>;
    train::detail::check_options(options);
    if constexpr (requires { optimizer_.check(); }) optimizer_.check();
    train::detail::Counted const counted(evaluation);
    train::detail::check_loaders(loader, evaluation, split());
    train::detail::check_evaluation(counted, evaluates, options);
    Index const batch_size = loader.options().batch_size;
    auto record = train::detail::record_of(any_session_, policy_, layout_, batch_size, options);
    if constexpr (train::detail::agrees<Session>)
      session_.agree(train::detail::agreement_of(options, loader, evaluation, counted, record.batch_size));
    auto const fit_plan =
        train::detail::plan_of(loader.samples(), loader.steps(split()), batch_size * split().all, record, options);
    train::detail::SomeLoader<Loader> any_loader(loader);
    train::detail::RunningFit fit(any_session_, layout_, seed_, any_loader, fit_plan, counted.best(options.judge_by),
                                  split(), options, done_, std::move(record));
    if (fit.was_over()) return std::move(fit.record());
    if (options.dry_run) {
      rehearse(loader, evaluation, options, fit.plan(), fit.record());
      return std::move(fit.record());
    }
    fit.begin(counted.names());
    auto const& plan = fit.plan();
    auto const steps = fit.record().steps;
    start(loader, plan.trainer_epoch(steps), plan.begin(steps), plan.before.epochs + plan.epochs);
    train::BatchFeed feed(loader, session_, plan.all_micro_steps(plan.steps) - plan.all_micro_steps(steps));
    while (!fit.over() && !fit.record().stopped) {
      make_step(fit, feed, options);
      if constexpr (evaluates)
        if (fit.evaluates()) {
          train::detail::WithAverages const averaged(any_session_, averages_in_place_);
          fit.take(evaluate_all(evaluation, fit.evaluating()));
        }
      fit.leave_step();
    }
    return fit.finish();
  }

  template <class Fit, class Feed>
  void make_step(Fit& fit, Feed& feed, FitOptions const& options) {
    auto const& plan = fit.plan();
    auto const before = fit.record().steps;
    auto const begin = plan.begin(before), end = plan.end(before);
    fit.before_step();
    for (auto micro = begin; micro < end; ++micro)
      micro_step(feed, plan.trainer_epoch(before), micro == begin, micro + 1 == end, options, fit.record(),
                 [&](auto... moments) { fit.after_micro_step(moments...); });
    auto const rate = optimizer_.learning_rate * fit.rate_factor();
    bool const compares = fit.compares();
    if (compares) train::detail::compare_replicas(session_, train::detail::Updates::make_alike, before);
    auto const updating = Clock::seconds();
    auto const loss = session_.update(
        optimizer_, {plan.trainer_steps(before + 1).steps, rate, options.clip_norm, options.loss_scaler});
    weight_ = loss.weight;
    if (compares) train::detail::compare_replicas(session_, train::detail::Updates::leave_apart, before + 1);
    fit.after_step(loss, rate, updating);
  }

  template <class Batches, class Batch>
  nn::Loss<HostSpace> step_of(Batches const& from, std::span<Batch const> batches, StepOptions const& options) {
    if constexpr (Session::DeviceReplica::scales_loss) {
      options.loss_scaler.check();
      if (done_.steps == 0) any_session_.set_loss_scale(options.loss_scaler.begin());
    }
    auto const step = done_.steps + 1;
    auto const shards = static_cast<std::size_t>(policy_.shards());
    train::detail::naming_samples(from, [&] {
      for (std::size_t at = 0; at < batches.size(); at += shards)
        session_.micro_step(batches.subspan(at, shards), {mix(~seed_, static_cast<std::uint64_t>(step), at), at == 0,
                                                          at + shards == batches.size(), false});
    });
    auto const loss = session_.update(
        optimizer_, {step, optimizer_.learning_rate * options.rate_factor, options.clip_norm, options.loss_scaler});
    train::detail::check_finite(any_session_, loss, step, options.clip_norm, rank(), ranks(),
                                policy_.shards() / parallel::shards_of_device(policy_));
    done_.steps = step;
    weight_ = loss.weight;
    if (!stepped_) stepped_ = train::detail::check_learning(any_session_, layout_, loss, step);
    return loss;
  }

  /// One batch forward and backward, whose gradients nobody sums, and one evaluated.
  template <class Loader, class Evaluation>
  void rehearse(Loader& loader, Evaluation const& evaluation, FitOptions const& options,
                train::detail::FitPlan const& plan, train::RunRecord& record) {
    auto const epoch = plan.trainer_epoch(record.steps);
    start(loader, epoch, plan.begin(record.steps), epoch + 1);
    train::BatchFeed feed(loader, session_, 1);
    micro_step(feed, epoch, true, false, options, record, [](auto...) {});
    train::detail::each_evaluation(evaluation,
                                   [&](std::string const& prefix, auto const& each) { evaluate(prefix, each, 1); });
    record.session.peak_bytes_per_device = session_.report().peak_bytes_per_device;
  }

  template <class Feed, class Hears>
  void micro_step(Feed& feed, Index epoch, bool first, bool last, FitOptions const& options, train::RunRecord& record,
                  Hears const& hears) {
    auto const asked = Clock::seconds();
    auto const batches = feed.next();
    auto const began = Clock::seconds();
    if (first) record.pass_began = began;
    train::detail::naming_samples(feed.held(), [&] {
      session_.micro_step(batches,
                          {mix(seed_, static_cast<std::uint64_t>(epoch)), first, last, options.stop.stop_requested()});
    });
    auto const queued = Clock::seconds();
    feed.send_next();
    auto const sent = Clock::seconds();
    record.data_wait_seconds += (began - asked) + (sent - queued);
    hears(asked, began, queued, sent);
  }

  Model model_;
  Optimizer optimizer_;
  Policy policy_;
  nn::ParameterLayout layout_;
  Session session_;
  train::detail::SomeSession<Optimizer, Session> any_session_{session_};
  std::uint64_t seed_;
  train::TrainerSteps done_;  // steps include those that were skipped since the loss scale was set
  bool stepped_ = false;
  double weight_ = 0;               // of the last step's loss
  bool averages_in_place_ = false;  // of the values
  mutable train::detail::OneThread user_;
};

}}  // namespace lockstep
