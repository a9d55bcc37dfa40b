// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/error.hpp>
#include <lockstep/data/detail/read_sample.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_COLD_INLINE std::string message_of(std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::exception const& known) {
    return known.what();
  } catch (...) {
    return "an exception of unknown type was thrown";
  }
}

LOCKSTEP_COLD_INLINE void rethrow_as_failure_of(std::string const& who, std::exception_ptr const& error,
                                                char const* remedy) {
  auto const why = message_of(error);
  try {
    std::rethrow_exception(error);
  } catch (...) {
    std::throw_with_nested(DataError(who + " cannot be made: " + why + remedy));
  }
}

}}}  // namespace lockstep::data::detail
