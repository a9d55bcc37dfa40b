// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns the World of a rank that another launcher has started, before the ranks meet.
World placed_world(Environment const& place, Options const& options, Engine engine);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/placed_world.ipp>
#endif
