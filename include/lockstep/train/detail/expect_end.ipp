// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/error.hpp>
#include <lockstep/train/detail/expect_end.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void refuse_endless(std::string const& caller, char const* or_else) {
  throw ConfigError(caller +
                    ": the loader reads a stream of unknown length, whose epoch would not end; give data::Streamed "
                    "the number of samples in an epoch" +
                    or_else);
}

}}}  // namespace lockstep::train::detail
