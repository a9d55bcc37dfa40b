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
#include <lockstep/core/start_thread.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/parallel/check/check_memory.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/detail/copy_parameters.hpp>
#include <lockstep/train/detail/single_thread_guard.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trainer/batch_feed.hpp>
#include <lockstep/train/trainer/detail/agreement_of.hpp>
#include <lockstep/train/trainer/detail/any_loader.hpp>
#include <lockstep/train/trainer/detail/averaged_parameters.hpp>
#include <lockstep/train/trainer/detail/batches_of.hpp>
#include <lockstep/train/trainer/detail/can_fit.hpp>
#include <lockstep/train/trainer/detail/check_evaluation.hpp>
#include <lockstep/train/trainer/detail/check_learning.hpp>
#include <lockstep/train/trainer/detail/check_options.hpp>
#include <lockstep/train/trainer/detail/compare_replicas.hpp>
#include <lockstep/train/trainer/detail/evaluate.hpp>
#include <lockstep/train/trainer/detail/fit_plan.hpp>
#include <lockstep/train/trainer/detail/loss_parts.hpp>
#include <lockstep/train/trainer/detail/record_of.hpp>
#include <lockstep/train/trainer/detail/rehearse.hpp>
#include <lockstep/train/trainer/detail/running_fit.hpp>
#include <lockstep/train/trainer/detail/start_loader.hpp>
#include <lockstep/train/trainer/detail/where_not_finite.hpp>
#include <lockstep/train/trainer/detail/with_sample_name.hpp>
#include <lockstep/train/trainer/evaluation.hpp>
#include <lockstep/train/trainer/fit_options.hpp>
#include <lockstep/train/trainer/training_state.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Trains a model of your own type under a parallel policy. Switching between `parallel::SingleDevice`, `DataParallel`
/// and `DistributedDataParallel` changes nothing else in the program.
/// With DistributedDataParallel all ranks construct it with equal arguments and make equal calls. Observers that print
/// or save belong to one rank only. One thread at a time may use it: calls that overlap with another thread's call
/// throw ConfigError.
/// @throws all that the loader, model, communicator or an observer throws; parameters are then those of the last
/// complete step
template <class Model, class Optimizer, class Policy>
class Trainer {
 public:
  /// The policy's replicas of the model, a parallel::Session.
  using Session = typename Policy::template Session<Model, Optimizer>;
  static_assert(parallel::is_session<Session, Policy, Model, Optimizer>());

  /// Memory space of the replicas.
  using Space = typename Session::DeviceReplica::Space;

  /// Initializes the parameters from `seed`, which also keys all random operations.
  /// @throws ConfigError, before it allocates anything, if parameters and optimizer state exceed the free memory
  [[gnu::cold]] Trainer(Model model, Optimizer optimizer, Policy policy, std::uint64_t seed = 0)
      : model_(std::move(model)),
        optimizer_(std::move(optimizer)),
        policy_(std::move(policy)),
        layout_(nn::ParameterLayout::of(model_)),
        session_(policy_, model_, layout_, initial_values(seed)),
        state_{.seed = seed} {
    if constexpr (optim::parts<Optimizer>() > 1) session_.set_optimizer_name(optimizer_.name_for(layout_));
    if constexpr (Session::spans_ranks)
      session_.check_agreement(train::detail::agreement_of(optimizer_, layout_, seed));
  }
  // Not copyable: the session refers to model, policy and layout.
  Trainer(Trainer const&) = delete;
  Trainer& operator=(Trainer const&) = delete;

  /// Loads parameters and buffers by name. The optimizer's state is unchanged, except that averages of changed
  /// parameters restart. Returns the strings that were saved with them.
  /// `names` selects the parameters to read and their names in the file, by a prefix such as "encoder." or a function
  /// of the model's names. `in_file` replaces the prefix in the file: pass "" for an encoder that was saved alone.
  /// `NamesInFile().with_new_rows("head.")` accepts fewer rows in the file than in the model.
  /// @collective with DistributedDataParallel: every rank loads an equal file
  /// @throws DataError if the file does not fit the model, CollectiveMismatch if ranks loaded different parameters
  /// @throws ConfigError if nothing of the model is selected, or within an evaluation by averages
  [[gnu::cold]] train::Metadata load(std::string const& path, train::NamesInFile const& names = {}) {
    auto const turn = call();
    std::array<double, 1> barrier{};
    session_.all_reduce(barrier);  // barrier: completes a save by the first rank
    train::Metadata metadata;
    replace_parameters("load", [&](std::span<float> values, std::span<float> buffers) {
      metadata = train::load_parameters(path, layout_, values, buffers, names);
    });
    session_.check_replicas(0);
    return metadata;
  }
  /// Loads the parameters with `prefix`, which `in_file` replaces in the file.
  train::Metadata load(std::string const& path, std::string_view prefix, std::string_view in_file) {
    return load(path, {prefix, in_file});
  }
  /// Copies parameters and buffers by name from another trainer's model. `prefix` selects names such as "critic.",
  /// which `in_other` replaces in the other model. A `share` below 1 interpolates: this += share * (other - this). A
  /// share of 0.001 after each step makes this a moving average.
  /// @collective with DistributedDataParallel and an optim::Averaged
  /// @throws ConfigError if the other model lacks a name, no name has the prefix, or share is not in [0, 1]
  /// @throws ConfigError within an evaluation by averages, ShapeError if two shapes differ
  template <class AnyModel, class AnyOptimizer, class AnyPolicy>
  void copy_parameters(Trainer<AnyModel, AnyOptimizer, AnyPolicy> const& other, std::string_view prefix,
                       std::string_view in_other, double share = 1) {
    replace_parameters("copy_parameters", [&](std::span<float> values, std::span<float> buffers) {
      train::detail::copy_parameters({other.layout(), other.values(), other.buffers()}, {layout_, values, buffers},
                                     prefix, in_other, share);
    });
  }
  /// Copies all parameters and buffers, or interpolates, as above.
  template <class AnyModel, class AnyOptimizer, class AnyPolicy>
  void copy_parameters(Trainer<AnyModel, AnyOptimizer, AnyPolicy> const& other, double share = 1) {
    copy_parameters(other, {}, {}, share);
  }
  /// Deprecated: use copy_parameters().
  template <class Other, class... Arguments>
  [[deprecated("copy_parameters")]] void take(Other const& other, Arguments const&... arguments) {
    copy_parameters(other, arguments...);
  }
  /// Makes the buffers of all devices and ranks equal, such as running statistics, by the policy's BufferPolicy. An
  /// evaluation does so too. A loop that trains on a Predictor's results calls it before `predictor.set(trainer)`.
  /// @collective with DistributedDataParallel
  void synchronize_buffers() {
    auto const turn = call();
    session_.synchronize_buffers();
  }
  /// Saves parameters, buffers and strings on the first rank, for `load`, which waits for the save on all ranks, and
  /// for a Predictor.
  /// @throws DataError if the file cannot be written, ConfigError if `metadata` cannot be saved, as for
  /// train::save_parameters
  /// @throws Error if a parameter is not finite; train::save_parameters saves it nevertheless
  [[gnu::cold]] void save(std::string const& path, train::Metadata const& metadata = {}) const {
    auto const turn = call();
    if (rank() > 0) return;
    train::detail::check_metadata(path, metadata);
    train::detail::write_finite_safetensors(path, layout_, values(), buffers(), {}, metadata, "; it is not saved");
  }

  /// Trains for `options.epochs` epochs and evaluates after each, or as `options` say. A later fit continues with the
  /// parameters, the optimizer's state and its step count, in another order and with other random numbers. Its schedule
  /// and loss scale restart. A stop by `options.stop` takes effect after the current step, or ends an evaluation, which
  /// is not reported: a run that resumes makes it again.
  /// @collective with DistributedDataParallel
  /// @throws ConfigError if the thread's stack is too small, an option or a setting of the optimizer is out of range,
  /// or both loaders are the same object
  /// @throws ConfigError if `best_by` is unknown, an option or observer needs evaluations that there are none of, or
  /// the warm-up is longer than the fit, or a stream of unknown length is to be read to its end
  /// @throws DataError if the checkpoint folder cannot be created, or an evaluation has weight 0
  /// @throws Error if the loss or a gradient to be clipped is not finite, or a parameter before an evaluation, a save
  /// or the end; if no parameter gets a gradient, or the weight is 0
  template <class Loader, class Evaluation = train::NoEvaluation>
  train::RunRecord fit(Loader& loader, Evaluation const& evaluation = {}, FitOptions const& options = {}) {
    if constexpr (train::detail::can_fit<Model, typename Session::DeviceReplica, Loader, Evaluation>()) {
      auto const turn = call();
      return train(loader, evaluation, options);
    } else {
      return {};
    }
  }

  /// Trains without evaluations.
  template <class Loader>
  train::RunRecord fit(Loader& loader, FitOptions const& options) {
    return fit(loader, train::NoEvaluation{}, options);
  }
  /// Rejects any argument after the options at compile time.
  template <class Loader, class Other>
  requires(!std::is_same_v<Other, FitOptions>) train::RunRecord fit(Loader&, FitOptions const&, Other const&) {
    static_assert(!train::is_evaluation<Other>,
                  "Lockstep: fit takes the evaluation before the options: trainer.fit(loader, "
                  "train::Evaluation{validation, metrics...}, {.epochs = 3})");
    static_assert(train::is_evaluation<Other>,
                  "Lockstep: fit takes nothing after its options; a class that is called after each step and epoch "
                  "derives from train::Observer and goes into FitOptions::observers");
    return {};
  }

  /// Makes one step of your own training loop. `batches` are the result of a loader's next(), one batch, or a range of
  /// batches: one per device or shard of this process, or a multiple, whose gradients are summed. Random operations
  /// differ from step to step. Returns the loss over all ranks and devices.
  /// @collective with DistributedDataParallel
  /// @throws ConfigError if the number of batches or an option is out of range, the loader was not started with
  /// `split()`, or, in the first step, the thread's stack is too small
  /// @throws Error if the loss or a gradient to be clipped is not finite, or the first step gives no parameter a
  /// gradient
  template <class Batches>
  nn::Loss<HostSpace> step(Batches const& batches, StepOptions const& options = {}) {
    auto const all = train::detail::batches_of(batches);
    using Batch = typename decltype(all)::value_type;
    if constexpr (train::detail::can_learn_from<Model, typename Session::DeviceReplica, Batch>()) {
      auto const turn = call();
      if (state_.done.steps == 0) expect_stack("step");
      train::detail::check_step(options, optimizer_, all.size(), policy_.shards());
      train::detail::check_split(batches, split());
      return step_of(batches, std::span<Batch const>(all), options);
    } else {
      return {};
    }
  }

  /// Returns the global gradient norm of the last step before clipping, or 0 if clipping is off. Equal on all ranks.
  [[nodiscard]] double gradient_norm() { return session_.gradient_norm(); }
  /// Returns means of parts of the last step's loss over all ranks and devices, by the names that nn::named_loss gives.
  /// NaN for a part without weight. For your own training loop: reports of `fit` have them.
  /// @collective with DistributedDataParallel
  /// @throws ConfigError if no step so far had a part of some name; after train::load_state, that part is NaN
  [[nodiscard]] std::vector<std::pair<std::string, double>> loss_parts(std::vector<std::string> const& names) {
    auto const turn = call();
    return train::detail::mean_loss_parts(session_, names, policy_.shards() / parallel::shards_of_device(policy_),
                                          state_.was_loaded ? names : std::vector<std::string>());
  }
  /// Compares parameters and optimizer state of all ranks bit by bit, for your own training loop.
  /// @collective with DistributedDataParallel   @throws CollectiveMismatch if they differ; names the first difference
  void check_replicas() {
    train::detail::compare_replicas(session_, train::detail::ComparisonTime::after_update, state_.done.steps);
  }

  /// Returns the mean loss and the metrics over all samples of the evaluation's loader, each counted once whatever the
  /// loader's `tail`, in evaluation mode. Uses the averages of an optim::Averaged. Several evaluations are made in
  /// order, for one report.
  /// @param on_progress called after each batch with the number of evaluated batches of this process, and their total
  /// @collective with DistributedDataParallel
  /// @throws DataError if there are no samples or their weight is 0, CollectiveMismatch if ranks have different
  /// samples, ConfigError if two results have one name
  template <class Evaluation>
  requires(train::is_evaluation<Evaluation> && !std::is_same_v<Evaluation, train::NoEvaluation>) train::EvaluationReport
      evaluate(Evaluation const& evaluation, train::ProgressCallback const& on_progress = {}) {
    if constexpr (Evaluation::loads) {
      auto const turn = call();
      expect_stack("evaluate");
      train::detail::check_names(train::detail::MetricNames(evaluation), "evaluate");
      if constexpr (Session::spans_ranks) {
        train::detail::check_agreement_and_samples(session_, train::detail::agreement_of(evaluation), split(),
                                                   evaluation);
      }
      train::detail::AveragedParameters const averaged(session_, state_.averages_in_place);
      return evaluate_all(evaluation, on_progress);
    } else {
      return {};
    }
  }
  /// Rejects anything else at compile time.
  template <class Other, class... Others>
  requires(!train::is_evaluation<Other>) train::EvaluationReport evaluate(Other const&, Others const&...) {
    static_assert(!std::is_same_v<Other, Other>,
                  "Lockstep: evaluate takes train::Evaluation{loader, metrics...}, and this is none; without metrics, "
                  "train::Evaluation{loader} gives the loss; see docs/reference/trainer.md");
    return {};
  }

  /// Returns the parameters on the host. For a GPU it is a copy, valid until the next call.
  [[nodiscard]] std::span<float const> values() const { return session_.values(); }
  /// Returns unlearned state of the model, such as running statistics, of the first device or of this rank.
  [[nodiscard]] std::span<float const> buffers() const { return session_.buffers(); }
  /// Returns the names, shapes and offsets of the parameters.
  [[nodiscard]] nn::ParameterLayout const& layout() const noexcept { return layout_; }
  /// Returns the trainer's copy of the model.
  [[nodiscard]] Model const& model() const noexcept { return model_; }
  /// Returns the trainer's policy.
  [[nodiscard]] Policy const& policy() const noexcept { return policy_; }
  /// Returns the part of a loader's batches that this process trains on.
  [[nodiscard]] data::Split split() const { return {policy_.first_shard(), policy_.shards(), policy_.all_shards()}; }
  /// Returns this process's rank in [0, ranks()).
  [[nodiscard]] int rank() const { return policy_.first_shard() / policy_.shards(); }
  /// Returns the number of ranks; 1 without DistributedDataParallel.
  [[nodiscard]] int ranks() const { return policy_.all_shards() / policy_.shards(); }
  /// Returns the string of rank `root`.   @collective with DistributedDataParallel
  [[nodiscard]] std::string broadcast(std::string text, int root) {
    session_.broadcast(text, root);
    return text;
  }

  /// Returns the session, for functions that read or restore replicas.
  [[nodiscard]] Session& session() noexcept { return session_; }
  /// Returns the state that is not in the session, for functions that save, restore or inspect a trainer.
  [[nodiscard]] train::TrainingState& state() noexcept { return state_; }

 private:
  [[nodiscard, gnu::cold]] std::vector<float> initial_values(std::uint64_t seed) {
    parallel::check_memory<typename Session::DeviceReplica, Optimizer>(policy_, layout_);
    if (Session::spans_ranks && rank() > 0) return {};  // rank 0 sends its own
    return nn::initial_values(layout_, seed, policy_.threads_each());
  }
  [[nodiscard]] train::detail::SingleThreadGuard::Call call() const {
    return {guard_, "Trainer", "make all calls from one thread, or use a lock"};
  }
  template <class Evaluation>
  [[gnu::cold]] train::EvaluationReport evaluate_all(Evaluation const& evaluation,
                                                     train::ProgressCallback const& on_progress,
                                                     std::stop_token const& stop = {}) {
    return train::detail::combined_report(evaluation, [&](std::string const& prefix, auto const& each) {
      return evaluate_steps(prefix, each, train::detail::steps_of(prefix, each, split()), on_progress, stop);
    });
  }
  /// Evaluates the first `steps` steps.
  template <class Loader, class... Metrics>
  train::EvaluationReport evaluate_steps(std::string const& prefix,
                                         train::Evaluation<Loader, Metrics...> const& evaluation, Index steps,
                                         train::ProgressCallback const& on_progress = {},
                                         std::stop_token const& stop = {}) {
    if constexpr (train::detail::can_evaluate<Model, typename Session::DeviceReplica, typename Loader::Batch,
                                              Metrics...>()) {
      session_.synchronize_buffers();
      train::detail::start_evaluation<typename Session::DeviceReplica>(evaluation.loader, split());
      return train::detail::evaluate(session_, split(), prefix, evaluation, steps, on_progress, stop);
    } else {
      return {};
    }
  }

  /// Calls f(values, buffers) with copies, which all replicas then take.
  template <class Function>
  [[gnu::cold]] void replace_parameters(char const* what, Function const& f) {
    auto const turn = call();
    state_.expect_parameters(what);
    auto const copy = [](std::span<float const> from) { return std::vector<float>(from.begin(), from.end()); };
    auto values = copy(session_.values()), buffers = copy(session_.buffers());
    f(std::span<float>(values), std::span<float>(buffers));
    train::detail::set_values_and_buffers(session_, layout_, values, buffers);
  }
  template <class Loader, class Evaluation>
  [[gnu::cold]] train::RunRecord train(Loader& loader, Evaluation const& evaluation, FitOptions const& options) {
    constexpr bool evaluates = !std::is_same_v<Evaluation, train::NoEvaluation>;
    expect_stack("fit");
    train::detail::check_options(options);
    optim::check_settings(optimizer_, layout_);
    train::detail::MetricNames const metric_names(evaluation);
    train::detail::check_loaders(loader, evaluation, split(), options.max_steps);
    train::detail::check_evaluation(metric_names, evaluates, options);
    Index const batch_size = loader.options().batch_size;
    auto record = train::detail::record_of(session_, policy_, layout_, batch_size, options);
    if constexpr (Session::spans_ranks) {
      train::detail::check_agreement_and_samples(
          session_, train::detail::agreement_of(options, loader, evaluation, metric_names, record.batch_size), split(),
          evaluation, loader);
    }
    auto const fit_plan =
        train::detail::plan_of(loader.samples(), loader.steps(split()), batch_size * split().all, record, options);
    train::detail::LoaderAdapter<Loader> any_loader(loader);
    train::detail::RunningFit fit(session_, layout_, state_.seed, any_loader, fit_plan,
                                  metric_names.best(options.best_by), split(), options, state_.done, std::move(record));
    bool const evaluates_first = evaluates && fit.lacks_evaluation();
    if (fit.was_complete() && !evaluates_first) {
      fit.record().was_complete = true;
      return std::move(fit.record());
    }
    if (options.dry_run) {
      fit.check_folder();
      run_dry(loader, evaluation, options, fit.plan(), fit.record());
      return std::move(fit.record());
    }
    fit.begin(metric_names.names());
    if constexpr (evaluates)
      if (evaluates_first) {
        evaluate_in(fit, evaluation);
        if (fit.record().stopped) return fit.finish();
        fit.save_evaluation();
        if (fit.is_complete()) return fit.finish();
      }
    auto const& plan = fit.plan();
    auto const steps = fit.record().steps;
    train::detail::start_loader<typename Session::DeviceReplica>(loader, split(), plan.trainer_epoch(steps),
                                                                 plan.begin(steps), plan.before.epochs + plan.epochs);
    if constexpr (!Space::host_accessible) {  // while the loader makes its first batches
      auto const began = Clock::seconds();
      auto const rehearse = [&](parallel::Rehearse makes) {
        return train::detail::rehearse(session_, loader, plan, steps, split(), options, makes);
      };
      if (fit.chooses_gemm_algorithms()) {  // recordings keep the algorithms
        static_cast<void>(rehearse(parallel::Rehearse::plans));
        fit.choose_gemm_algorithms();
      }
      fit.add_rehearsal(rehearse(parallel::Rehearse::recordings), began);
    }
    train::BatchFeed feed(loader, session_, plan.all_micro_steps(plan.steps) - plan.all_micro_steps(steps));
    while (!fit.is_complete() && !fit.record().stopped) {
      make_step(fit, feed, options);
      if constexpr (evaluates)
        if (fit.evaluates()) evaluate_in(fit, evaluation);
      fit.end_step();
    }
    return fit.finish();
  }

  template <class Fit, class Evaluation>
  [[gnu::cold]] void evaluate_in(Fit& fit, Evaluation const& evaluation) {
    fit.check_parameters();
    fit.save_if_throws([&] {
      train::detail::AveragedParameters const averaged(session_, state_.averages_in_place);
      try {
        fit.add_evaluation(evaluate_all(evaluation, fit.evaluating(), fit.stop()));
      } catch (train::detail::EvaluationInterrupted) {
        fit.interrupt();
      }
    });
  }

  template <class Fit, class Feed>
  [[gnu::noinline]] void make_step(Fit& fit, Feed& feed, FitOptions const& options) {
    auto const& plan = fit.plan();
    auto const before = fit.record().steps;
    auto const begin = plan.begin(before), end = plan.end(before);
    fit.before_step();
    for (auto micro = begin; micro < end; ++micro)
      micro_step(feed, plan.trainer_epoch(before), micro == begin, micro + 1 == end, options, fit.record(),
                 fit.pass_meter(), [&](auto... moments) { fit.after_micro_step(moments...); });
    auto const rate = optimizer_.learning_rate * fit.rate_factor();
    bool const compares = fit.compares_replicas();
    if (compares) train::detail::compare_replicas(session_, train::detail::ComparisonTime::before_update, before);
    auto const updating = Clock::seconds();
    auto const loss = session_.update(
        optimizer_, {plan.trainer_steps(before + 1).steps, rate, options.clip_norm, options.loss_scaler});
    state_.weight = loss.weight;
    if (compares) train::detail::compare_replicas(session_, train::detail::ComparisonTime::after_update, before + 1);
    fit.after_step(loss, rate, updating);
  }

  template <class Batches, class Batch>
  nn::Loss<HostSpace> step_of(Batches const& from, std::span<Batch const> batches, StepOptions const& options) {
    if constexpr (Session::DeviceReplica::scales_loss) {
      options.loss_scaler.check();
      if (state_.done.steps == 0) session_.set_loss_scale(options.loss_scaler.begin());
    }
    auto const step = state_.done.steps + 1;
    auto const shards = static_cast<std::size_t>(policy_.shards());
    train::detail::with_sample_name(from, [&] {
      for (std::size_t at = 0; at < batches.size(); at += shards)
        session_.micro_step(batches.subspan(at, shards), {mix(~state_.seed, static_cast<std::uint64_t>(step), at),
                                                          at == 0, at + shards == batches.size(), false});
    });
    auto const loss = session_.update(
        optimizer_, {step, optimizer_.learning_rate * options.rate_factor, options.clip_norm, options.loss_scaler});
    train::detail::check_finite(session_, loss, step, options.clip_norm, rank(), ranks(),
                                policy_.shards() / parallel::shards_of_device(policy_));
    state_.done.steps = step;
    state_.weight = loss.weight;
    if (!state_.has_learned) state_.has_learned = train::detail::check_learning(session_, layout_, loss, step);
    return loss;
  }

  /// Computes forward and backward of one batch, without a reduction of gradients, looks up the parts of its loss, and
  /// evaluates one batch.
  template <class Loader, class Evaluation>
  [[gnu::cold]] void run_dry(Loader& loader, Evaluation const& evaluation, FitOptions const& options,
                             train::detail::FitPlan const& plan, train::RunRecord& record) {
    auto const epoch = plan.trainer_epoch(record.steps);
    train::detail::start_loader<typename Session::DeviceReplica>(loader, split(), epoch, plan.begin(record.steps),
                                                                 epoch + 1);
    train::BatchFeed feed(loader, session_, 1);
    train::detail::PassMeter unused;
    micro_step(feed, epoch, true, false, options, record, unused, [](auto...) {});
    if (!options.loss_parts.empty())
      static_cast<void>(
          train::detail::mean_loss_parts(session_, options.loss_parts, record.devices, record.loss_parts));
    train::detail::each_evaluation(
        evaluation, [&](std::string const& prefix, auto const& each) { evaluate_steps(prefix, each, 1); });
    record.session.peak_bytes_per_device = session_.report().peak_bytes_per_device;
  }

  template <class Feed, class RecordTimes>
  void micro_step(Feed& feed, Index epoch, bool first, bool last, FitOptions const& options, train::RunRecord& record,
                  train::detail::PassMeter& meter, RecordTimes const& record_times) {
    auto const asked = Clock::seconds();
    auto const batches = feed.next();
    auto const began = Clock::seconds();
    meter.begin_pass();
    if (first) record.pass_began = began;
    train::detail::with_sample_name(feed.held(), [&] {
      session_.micro_step(
          batches, {mix(state_.seed, static_cast<std::uint64_t>(epoch)), first, last, options.stop.stop_requested()});
    });
    auto const queued = Clock::seconds();
    meter.end_pass(queued - began);
    feed.send_next();
    auto const sent = Clock::seconds();
    record.data_wait_seconds += (began - asked) + (sent - queued);
    record_times(asked, began, queued, sent);
  }

  Model model_;
  Optimizer optimizer_;
  Policy policy_;
  nn::ParameterLayout layout_;
  Session session_;
  train::TrainingState state_;
  mutable train::detail::SingleThreadGuard guard_;
};

namespace train::detail {
struct NoPolicy {};  // of a Trainer without a third argument
}  // namespace train::detail

/// Reports why the arguments are invalid, without further errors.
template <class Model, class Optimizer, class Policy>
requires(!(nn::HasParameters<Model> && optim::Optimizer<Optimizer> && parallel::ParallelPolicy<Policy>))  //
    class Trainer<Model, Optimizer, Policy> {
  static constexpr bool has_parameters = nn::HasParameters<Model>;
  static_assert(has_parameters,
                "Lockstep: the model has no visit(each) that names its layers and parameters in forward order; see "
                "docs/reference/model.md");
  static_assert(!has_parameters || optim::Optimizer<Optimizer>,
                "Lockstep: the second argument is no optimizer: it has no `static constexpr int states`, no "
                "`learning_rate` or no "
                "step(stream, slice, scalars) const; see docs/reference/optimizer.md");
  static_assert(
      !has_parameters || !optim::Optimizer<Optimizer> || parallel::ParallelPolicy<Policy>,
      "Lockstep: the third argument is no parallel policy (SingleDevice, DataParallel, DistributedDataParallel); "
      "see docs/reference/parallel.md");

 public:
  /// @cond
  // Members that prevent further errors.
  Trainer(Model const&, Optimizer const&, Policy const& = {}, std::uint64_t = 0) {}
  template <class Loader, class Evaluation = train::NoEvaluation>
  train::RunRecord fit(Loader&, Evaluation const& = {}, FitOptions const& = {}) {
    return {};
  }
  template <class Loader>
  train::RunRecord fit(Loader&, FitOptions const&) {
    return {};
  }
  template <class Batches>
  nn::Loss<HostSpace> step(Batches const&, StepOptions const& = {}) {
    return {};
  }
  template <class Evaluation>
  train::EvaluationReport evaluate(Evaluation const&) {
    return {};
  }
  void save(std::string const&) const {}
  /// @endcond
};

/// Arguments without a policy, which Trainer rejects.
template <class Model, class Optimizer>
Trainer(Model, Optimizer) -> Trainer<Model, Optimizer, train::detail::NoPolicy>;

}}  // namespace lockstep
