// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/data/loader/loader_state.hpp>
#include <lockstep/data/loader/loader_stats.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>
#include <lockstep/train/trainer/detail/sample_not_finite.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Interface of a loader without the type of its batches, like parallel::AnySession.
class AnyLoader {
 public:
  AnyLoader(AnyLoader const&) = delete;
  AnyLoader& operator=(AnyLoader const&) = delete;

  [[nodiscard]] virtual Index samples() const = 0;
  /// Returns whether the loader can resume within an epoch, and so has the two functions below.
  [[nodiscard]] virtual bool resumes() const noexcept = 0;
  virtual void check(data::LoaderState const& state) const = 0;
  [[nodiscard]] virtual data::LoaderState state_before(data::Split const& split, Index epoch, Index step) const = 0;
  /// Makes its workers record into `timeline`, if they can. A null pointer ends the recording.
  virtual void trace(Timeline* timeline) = 0;
  /// Makes the loader observe its workers, if it can.
  virtual void observe() = 0;
  /// Returns a sentence about the first sample with an infinity or a NaN in micro-steps [begin, end) of an epoch, or an
  /// empty string. Restarts the loader.
  [[nodiscard]] virtual std::string sample_not_finite(data::Split const& split, Index epoch, Index begin,
                                                      Index end) = 0;
  /// Returns the loader's counters; zeros if it has none.
  [[nodiscard]] virtual data::LoaderStats stats() const = 0;

 protected:
  AnyLoader() = default;
  ~AnyLoader() = default;
};

/// Adapter from a loader, which must outlive it.
template <class Loader>
class LoaderAdapter final : public AnyLoader {
 public:
  explicit LoaderAdapter(Loader& loader) : loader_(loader) {}

  Index samples() const override { return loader_.samples(); }
  bool resumes() const noexcept override { return can_resume; }
  void check([[maybe_unused]] data::LoaderState const& state) const override {
    if constexpr (can_resume) loader_.check(state);
  }
  data::LoaderState state_before(data::Split const& split, Index epoch, Index step) const override {
    if constexpr (can_resume)
      return loader_.state_before(split, epoch, step);
    else
      return {};
  }
  void trace(Timeline* timeline) override { trace_loader(loader_, timeline); }
  void observe() override { observe_loader(loader_); }
  std::string sample_not_finite(data::Split const& split, Index epoch, Index begin, Index end) override {
    return detail::sample_not_finite(loader_, split, epoch, begin, end);
  }
  data::LoaderStats stats() const override { return stats_of(loader_); }

 private:
  static constexpr bool can_resume = ResumesWithinEpochs<Loader>;

  Loader& loader_;
};

}}}  // namespace lockstep::train::detail
