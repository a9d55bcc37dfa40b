// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// What of a trainer is nobody's affair but that of who saves it as a whole.
struct TrainerParts {
  template <class Trainer>
  [[nodiscard]] static auto& session(Trainer& trainer) noexcept {
    return trainer.session_;
  }
  /// The same, of no type of its own.
  template <class Trainer>
  [[nodiscard]] static auto& any_session(Trainer& trainer) noexcept {
    return trainer.any_session_;
  }
  /// The loader delivers one epoch, as for an evaluation.
  template <class Trainer, class Loader>
  static void start(Trainer& trainer, Loader& loader) {
    trainer.session_.share_buffers();
    trainer.start(loader, 0, 0, 1);
  }
  template <class Trainer>
  [[nodiscard]] static bool& averages_in_place(Trainer& trainer) noexcept {
    return trainer.averages_in_place_;
  }
  /// Before `what` is done with the parameters.
  /// @throws ConfigError while an observer hears of an evaluation by averages, which stand in their place
  template <class Trainer>
  static void expect_values(Trainer const& trainer, char const* what) {
    if (trainer.averages_in_place_)
      throw ConfigError(std::string(what) +
                        ": an evaluation is under way in which the parameters are their averages; do it in an "
                        "observer's step, or after the fit");
  }
  /// Of the last step's loss, over all shards.
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
