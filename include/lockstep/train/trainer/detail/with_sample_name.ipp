// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/with_sample_name.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE void throw_named(RowError const& error, std::string const& sample) {
  if (sample.empty()) throw;
  throw RowError(
      std::string(error.what()) + "; row " + std::to_string(error.row()) + " of the loader's batch is " + sample,
      error.row(), error.position());
}

}}}  // namespace lockstep::train::detail
