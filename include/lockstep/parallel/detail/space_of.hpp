// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Space of a communicator's memory: the host, unless the communicator defines `Space`.
template <class Communicator>
struct SpaceOf {
  using type = HostSpace;
};
template <class Communicator>
requires requires { typename Communicator::Space; }
struct SpaceOf<Communicator> {
  using type = typename Communicator::Space;
};

}}}  // namespace lockstep::parallel::detail
