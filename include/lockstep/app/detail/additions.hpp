// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>
#include <vector>

#include <lockstep/train/names_in_file.hpp>
#include <lockstep/train/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// What is done with a trainer once the run is over, unless a program says.
struct NothingThen {
  template <class Trainer>
  void operator()(Trainer&) const {}
};

/// What a program adds to what the flags say, before it calls Training::fit.
class Additions {
 public:
  /// Who hears how the run goes besides what --save-dir and the screen get; lives until `fit` has returned. One that
  /// shows or saves is added where `speaks()`, one that changes how training goes on, on every rank.
  void observe(train::Observer& observer) { observers_.push_back(&observer); }
  /// How the file of --init-from calls the model's parameters; "" for those that start as without it, as a new head.
  void init_by(train::NamesInFile names) { init_names_ = std::move(names); }

 protected:
  std::vector<train::Observer*> observers_;
  train::NamesInFile init_names_;
};

}}}  // namespace lockstep::app::detail
