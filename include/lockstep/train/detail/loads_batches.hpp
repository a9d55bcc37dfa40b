// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// What a trainer asks of a loader: a data::DataLoader, which is not const as it is started.
template <class L>
concept LoadsBatches = requires(L& loader, data::Split const& split) {
  typename L::Batch;
  loader.start(split, Index{}, Index{}, Index{});
  loader.steps(split);
  loader.next();
};

}}}  // namespace lockstep::train::detail
