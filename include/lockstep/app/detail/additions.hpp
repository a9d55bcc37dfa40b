// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>
#include <vector>

#include <lockstep/train/files/names_in_file.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Default of `then` in Training::fit: does nothing with the trainer after the run.
struct NothingThen {
  template <class Trainer>
  void operator()(Trainer&) const {}
};

/// Additions of a program to the flags, made before it calls Training::fit.
class Additions {
 public:
  /// Adds an observer to those of --save-dir and the screen. It must outlive `fit`. Add an observer that prints or
  /// saves on the rank where `speaks()` returns true. Add one that changes training on every rank.
  void observe(train::Observer& observer) { observers_.push_back(&observer); }
  /// Sets the names of the model's parameters in the file of --init-from; "" for parameters that the file does not
  /// initialize, as of a new head.
  void init_by(train::NamesInFile names) { init_names_ = std::move(names); }

 protected:
  std::vector<train::Observer*> observers_;
  train::NamesInFile init_names_;
};

}}}  // namespace lockstep::app::detail
