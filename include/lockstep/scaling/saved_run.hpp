// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <lockstep/core/element_type.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/regular_file.hpp>
#include <lockstep/parallel/wire_format.hpp>
#include <lockstep/scaling/prediction.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// A run that a trainer saved in a --save-dir: run.json, or the doctor's doctor.json.
class SavedRun {
  template <class Function>
  auto with_file_name(Function&& f) const {
    try {
      return f();
    } catch (DataError const& error) {
      throw DataError(file_ + ": " + error.what());
    }
  }

 public:
  /// @throws DataError if neither file exists, with a remedy, or if it is no JSON, with file and line
  explicit SavedRun(std::string const& directory);
  /// @param text content of run.json
  SavedRun(std::string const& text, std::string name)
      : file_("run.json"), name_(std::move(name)), json_(json::parse(text, file_)) {}

  /// Returns the directory's name.
  [[nodiscard]] std::string const& name() const noexcept { return name_; }

  /// Calls f with run.json's value and returns its result.
  /// @throws DataError with the file's name, if f needs a missing value
  template <class Function>
  auto read(Function&& f) const {
    return with_file_name([&] { return f(json_); });
  }

  /// Returns speed and phases of the run, as run.json has them.   @throws DataError for a missing value
  [[nodiscard]] StepProfile profile() const;

  /// Returns the measured work of each rank or device in a step.
  [[nodiscard]] Workload workload() const;

 private:
  static Index positive(json::Value const& run, char const* name);
  static double bytes(json::Value const& bucket, char const* name);

  static double bytes_of(json::Value const& wire);

  /// Adds the steps of the ranks and the processors that they share.
  static void add_ranks(StepProfile& out, json::Value const& run);

  /// Adds the gradients with the times at which they are ready, as fractions of a pass, from the last step's buckets.
  /// Without buckets, spreads gradients evenly over the last two thirds of the pass, which backward takes. Does so on
  /// a GPU, too, whose buckets only have times of queueing.
  static void add_gradients(Workload& out, json::Value const& run, bool queued);

  std::string file_, name_;
  json::Value json_;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/saved_run.ipp>
#endif
