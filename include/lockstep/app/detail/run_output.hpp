// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/detail/hints.hpp>
#include <lockstep/app/detail/parse_number.hpp>
#include <lockstep/app/examination.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/app/precision.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/regular_file.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>
#include <lockstep/scaling/bottleneck.hpp>
#include <lockstep/scaling/diagnosis.hpp>
#include <lockstep/scaling/fabric.hpp>
#include <lockstep/scaling/profile_of.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/scaling_report.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/files/parameters_sha256.hpp>
#include <lockstep/train/logs/run_json.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trace/layer_times.hpp>
#include <lockstep/train/trace/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Returns the labels of run.json in addition to the run's record.
[[nodiscard]] inline train::RunLabels run_labels(Options const& options, char const* precision,
                                                 train::RunRecord const& record) {
  train::RunLabels labels;
  labels.example = options.program;
  labels.backend = options.backend == Backend::cuda ? CudaSpace::name : HostSpace::name;
  labels.precision = precision;
  labels.command = options.command_line;
  for (auto const& [flag, text] : options.settings) labels.settings.emplace_back(flag.substr(2), text);
  for (auto const& flag : options.text_flags) labels.strings.push_back(flag.substr(2));
  auto const bottleneck = scaling::find_bottleneck(scaling::profile_of(record));
  labels.bound = bottleneck.bound;
  labels.cause = bottleneck.cause;
  labels.summary = bottleneck.summary;
  return labels;
}

/// Output of rank 0 on the screen and in --save-dir.
class RunOutput {
 public:
  /// Stores the arguments; options and world must outlive this object. `precision` is empty if the program has no such
  /// flag.
  RunOutput(Options const& options, launch::World const& world, std::optional<Precision> precision)
      : options_(options), world_(world), precision_(precision) {}

  [[nodiscard]] bool is_main_rank() const noexcept { return world_.rank == 0; }
  [[nodiscard]] bool saves() const noexcept { return is_main_rank() && !options_.save_dir.empty(); }
  [[nodiscard]] std::string const& folder() const noexcept { return options_.save_dir; }
  [[nodiscard]] std::string file(std::string const& name) const { return folder() + "/" + name; }
  [[nodiscard]] std::string best_file() const { return file("checkpoints/best.safetensors"); }

  void note(std::string const& what) const;

  /// Facts to print at the start.
  struct Beginning {
    char const* engine;
    Index batch_size;  ///< of the loader
    Index parameters;
    Index warmup;  ///< optimizer steps by the flags
    Index steps;   ///< of the schedule
  };
  void announce(Beginning const& run) const;

  /// Prints the result of --dry-run.
  void print_dry_run(train::RunRecord const& record, Index samples, Index epoch_steps, Index steps) const;

  /// Prints the end of a fit.
  void print_end(train::RunRecord const& record) const;

  /// Writes layers.csv and prints the table of layers of a trace.
  void print_layer_times(train::Trace const& trace, nn::ParameterLayout const& layout) const;

  void save(train::RunRecord const& record, nn::ParameterLayout const& layout, std::span<float const> values) const;

  /// Adds numbers to `final` in run.json, unless it has them.
  void add_final(std::vector<std::pair<std::string, double>> const& metrics) const;

  /// Prints the result of --doctor and writes doctor.json to --save-dir, if given.
  void print_diagnosis(Examination const& found, parallel::CollectiveCost const& all_reduce,
                       nn::ParameterLayout const& layout) const;

 private:
  /// Returns the link for predictions: as the flags say, or else as measured between GPUs, or else assumed. An
  /// all-reduce between the CPUs of one host says nothing about a network.
  [[nodiscard]] scaling::Fabric fabric(parallel::CollectiveCost const& all_reduce, int ranks) const;
  [[nodiscard]] train::RunLabels labels(train::RunRecord const& record) const;
  /// Returns whether oneDNN could replace the library's convolutions. It needs float activations, and a compiler other
  /// than nvcc, which aborts in oneDNN's header. Weights of convolutions have an extent for each dimension, in addition
  /// to input and output channels.
  [[nodiscard]] bool can_use_onednn(nn::ParameterLayout const& layout) const noexcept {
    return precision_.value_or(Precision::fp32) == Precision::fp32 && !kernel::Convolution<HostSpace>::by_onednn &&
           !with_cuda_ && std::any_of(layout.entries().begin(), layout.entries().end(), [](auto const& entry) {
             return entry.shape.size() > 2;
           });
  }
  /// Prints a start-up of at least 5 % of the training time.
  static void print_startup(train::RunRecord const& record);
  void note_warmup(Beginning const& run) const;
  static char const* plural(int count) noexcept { return count == 1 ? "" : "s"; }

  Options const& options_;
  launch::World const& world_;
  std::optional<Precision> precision_;
  bool with_cuda_ = built_with_cuda<>;  // known here only, because a linked library is compiled without CUDA
  double began_ = Clock::seconds();
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/run_output.ipp>
#endif
