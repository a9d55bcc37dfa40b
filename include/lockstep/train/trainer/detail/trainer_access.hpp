// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Internal access to a trainer, for serialization and observers.
struct TrainerAccess {
  template <class Trainer>
  [[nodiscard]] static auto& session(Trainer& trainer) noexcept {
    return trainer.session_;
  }
  /// Returns the session through its type-erased interface.
  template <class Trainer>
  [[nodiscard]] static auto& any_session(Trainer& trainer) noexcept {
    return trainer.any_session_;
  }
  /// Starts the loader for one epoch, as for an evaluation.
  template <class Trainer, class Loader>
  static void start(Trainer& trainer, Loader& loader) {
    trainer.session_.synchronize_buffers();
    trainer.start(loader, 0, 0, 1);
  }
  template <class Trainer>
  [[nodiscard]] static bool& averages_in_place(Trainer& trainer) noexcept {
    return trainer.averages_in_place_;
  }
  /// Checks that the parameters are in place before the operation `what`.
  /// @throws ConfigError within an evaluation by averages, which then replace the parameters
  template <class Trainer>
  static void expect_values(Trainer const& trainer, char const* what) {
    if (trainer.averages_in_place_)
      throw ConfigError(
          std::string(what) +
          ": an evaluation with averaged parameters is running; do it in an observer's step, or after the fit");
  }
  /// Returns the weight of the last step's loss over all shards.
  template <class Trainer>
  [[nodiscard]] static double weight(Trainer const& trainer) noexcept {
    return trainer.weight_;
  }
  template <class Trainer>
  [[nodiscard]] static auto& done(Trainer& trainer) noexcept {
    return trainer.done_;
  }
  template <class Trainer>
  [[nodiscard]] static std::uint64_t seed(Trainer const& trainer) noexcept {
    return trainer.seed_;
  }
};

}}}  // namespace lockstep::train::detail
