// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Starts a loader so that its first epoch has each sample at most once, whatever its options are: without padding, and
/// a sample that would be substituted is skipped.
template <class Loader>
void start_once(Loader& loader, data::Split const& split) {
  if constexpr (requires { loader.start(split, 0, 0, 1, data::Tail::exact, data::OnFailure::skip); }) {
    auto const on_failure = loader.options().on_failure;
    loader.start(split, 0, 0, 1, data::Tail::exact,
                 on_failure == data::OnFailure::substitute ? data::OnFailure::skip : on_failure);
  } else {
    loader.start(split, 0, 0, 1);
  }
}

}}}  // namespace lockstep::train::detail
