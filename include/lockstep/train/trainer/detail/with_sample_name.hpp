// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/version.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Rethrows the error with the sample's name appended, or unchanged without a name.
[[noreturn, gnu::cold]] void throw_named(RowError const& error, std::string const& sample);

/// Calls f() on a loader's current batches. If a layer refuses a row, the error names the sample.
template <class Held, class Function>
void with_sample_name(Held const& held, Function&& f) {
  try {
    f();
  } catch (RowError const& error) {
    throw_named(error, error.position() >= 0 ? sample_name(held, error.position()) : std::string());
  }
}

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/with_sample_name.ipp>
#endif
