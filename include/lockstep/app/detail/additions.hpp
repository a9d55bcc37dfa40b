// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/train/files/names_in_file.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Default of `then` in Training::fit: does nothing with the trainer after the run.
struct DoNothing {
  template <class Trainer>
  void operator()(Trainer&) const {}
};

/// Additions of a program to the flags and to the files of --save-dir.
class Additions {
 public:
  /// Adds an observer to those of --save-dir and the screen. It must outlive `fit`. Add an observer that prints or
  /// saves on the rank where `is_main_rank()` returns true. Add one that changes training on every rank.
  void observe(train::Observer& observer) { observers_.push_back(&observer); }
  /// Sets the names of the model's parameters in the file of --init-from; "" for parameters that the file does not
  /// initialize, such as those of a new head. With --evaluate, a file that has all names of the model is read by the
  /// model's names instead.
  void init_by(train::NamesInFile names) { init_names_ = std::move(names); }
  /// Selects the parameters with `prefix`, which `in_file` replaces in the file, as Trainer::load does.
  void init_by(std::string_view prefix, std::string_view in_file) { init_names_ = {prefix, in_file}; }
  /// Adds a number to `final` in run.json, such as a score of decoded texts. Call it in `then`, the last argument of
  /// `fit`. Only rank 0 writes. A second call with the same name replaces the number. NaN and infinity become null.
  /// @throws ConfigError for a name that evaluations or the loss have
  void final_metric(std::string const& name, double value) {
    if (name.empty() || name == "train_loss" || name.starts_with("eval_"))
      throw ConfigError("final_metric: \"" + name +
                        "\" is reserved in run.json; give a name that is not train_loss and does not begin with eval_");
    final_metrics_.emplace_back(name, value);
  }

  /// Makes --evaluate call `then` only, for evaluation data without labels.
  void skip_evaluation() noexcept { evaluates_ = false; }

 protected:
  std::vector<train::Observer*> observers_;
  train::NamesInFile init_names_;
  bool evaluates_ = true;
  std::vector<std::pair<std::string, double>> final_metrics_;
};

}}}  // namespace lockstep::app::detail
