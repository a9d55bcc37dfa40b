// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>
#include <lockstep/parallel/wire_format.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Measurements of --doctor: short parts of a run, of some tens of steps or some seconds each. Steps are the trainer's
/// own; with learning rate 0 they change only the optimizer's state.
struct Examination {
  train::RunRecord complete_steps;       ///< steps on batches of the loader
  train::RunRecord replayed;             ///< steps on cached batches
  bool stopped = false;                  ///< stopped by FitOptions::stop before all was measured
  double loader_samples_per_second = 0;  ///< of this rank, without other work

  /// @collective with DistributedDataParallel
  template <class Trainer, class Loader, class Evaluation>
  static Examination make(Trainer& trainer, Loader& loader, Evaluation const& evaluation, FitOptions options) {
    auto const split = trainer.split();
    options.evaluate_every_epochs = options.evaluate_every_steps = 0;
    auto const steps = [&](Index count) {
      options.max_steps = options.epochs = count;  // an epoch has at least one step
      return trainer.fit(loader, evaluation, options);
    };
    Examination out;
    auto const first = steps(warm_up);
    out.stopped = first.stopped;
    if (out.stopped) return out;
    auto const count = steps_within(seconds_each, first);
    out.complete_steps = steps(count);
    out.stopped = out.complete_steps.stopped;
    if (out.stopped) return out;
    loader.replay(data::Replay::cached);
    out.replayed = steps(count);
    loader.replay(data::Replay::none);
    out.stopped = out.replayed.stopped;
    if (!out.stopped) out.loader_samples_per_second = rate(loader, split);
    return out;
  }

  /// Measures an all-reduce of gradients over the communicator's ranks without other work, between GPUs if it has one.
  /// @collective
  template <class Communicator>
  static parallel::CollectiveCost measure_all_reduce(Communicator& communicator,
                                                     parallel::WireFormat wire = parallel::WireFormat::float32) {
    if (communicator.size() == 1) return {};
    constexpr auto bytes = parallel::CollectiveCost::large;
    memory::Block const block = communicator.allocate(bytes);  // zeros
    std::span<float> const zeros(reinterpret_cast<float*>(block.data()), bytes / sizeof(float));
    return parallel::CollectiveCost::measure(communicator, zeros, element_type(wire));
  }

 private:
  static constexpr Index warm_up = 3, max_steps = 40, min_steps = 4;
  static constexpr Index max_gpu_steps = 400;  // the first steps record passes, and later steps replay them
  static constexpr double seconds_each = 4;

  /// Returns the number of steps, equal on all ranks, because it depends only on the seconds of all ranks.
  [[nodiscard]] static Index steps_within(double seconds, train::RunRecord const& record);

  /// Returns the loader's samples per second, without batches that were prefetched before.
  template <class Loader>
  [[nodiscard]] static double rate(Loader& loader, data::Split const& split) {
    loader.start(split, 0, 0, Index{1} << 30);
    for (int i = 0; i <= loader.options().prefetch; ++i) static_cast<void>(loader.next());
    auto const began = Clock::seconds();
    double samples = 0, seconds = 0;
    for (Index i = 0; i < min_steps || (i < 4 * max_steps && seconds < seconds_each / 2); ++i) {
      samples += static_cast<double>(loader.next().rows());
      seconds = Clock::seconds() - began;
    }
    return seconds > 0 ? samples / seconds : 0;
  }
};

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/examination.ipp>
#endif
