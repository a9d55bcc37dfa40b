// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Loader of a trainer: a data::DataLoader that is not const.
template <class L>
concept LoadsBatches = requires(L& loader, data::Split const& split) {
  typename L::Batch;
  loader.start(split, Index{}, Index{}, Index{});
  loader.steps(split);
  loader.next();
};

}}}  // namespace lockstep::train::detail
