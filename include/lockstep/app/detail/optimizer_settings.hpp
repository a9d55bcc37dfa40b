// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include <lockstep/app/detail/parse_number.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Applies the flags to the program's optimizer.
/// @throws ConfigError if the program sets a learning rate that the flag's default would replace
template <class Optimizer>
void apply_settings(Options const& options, Optimizer& optimizer) {
  auto const gives = [&](char const* flag) {
    return std::find(options.given.begin(), options.given.end(), flag) != options.given.end();
  };
  bool own_rate = false, own_decay = false;  // unknown for optimizers without a default constructor
  if constexpr (std::is_default_constructible_v<Optimizer>) {
    Optimizer const plain;
    own_rate = optimizer.learning_rate != plain.learning_rate;
    if constexpr (requires { optimizer.weight_decay; }) own_decay = optimizer.weight_decay != plain.weight_decay;
  }
  auto const rate = optimizer.learning_rate;
  if (own_rate && rate != options.learning_rate && rate != options.scaled_learning_rate() && !gives("--lr"))
    throw ConfigError("Training::fit: the optimizer's learning rate is " + shortest(rate) +
                      ", but --lr has the default " + shortest(options.learning_rate) +
                      ", which applies; set learning_rate in the program's Options");
  optimizer.learning_rate = options.doctor ? 0 : options.scaled_learning_rate();
  if constexpr (requires { optimizer.weight_decay; }) {
    bool const programs = options.weight_decay != Options().weight_decay && !own_decay;
    if (gives("--weight-decay") || programs) optimizer.weight_decay = options.weight_decay;
  }
}

}}}  // namespace lockstep::app::detail
