// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <new>
#include <string>

#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/detail/sample_reader.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns the message of an exception.
[[nodiscard]] std::string message_of(std::exception_ptr const& error);

/// Throws a DataError "WHO cannot be made: MESSAGE" with an exception nested. `remedy` follows the message.
[[noreturn, gnu::cold]] void rethrow_as_failure_of(std::string const& who, std::exception_ptr const& error,
                                                   char const* remedy = "");

/// Returns sample i of a dataset for `reader`, which reads samples without a loader.
/// @throws DataError that names the reader and the sample, with the exception of `get` nested; std::bad_alloc and
/// OutOfMemoryError unchanged
template <class Source>
[[nodiscard]] decltype(auto) read_sample(char const* reader, Source const& dataset, Index i) {
  try {
    return dataset.get(i);
  } catch (std::bad_alloc const&) {
    throw;  // not the sample's fault
  } catch (OutOfMemoryError const&) {
    throw;
  } catch (...) {
    rethrow_as_failure_of(std::string(reader) + ": " + name_of(dataset, i), std::current_exception());
  }
}

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/detail/read_sample.ipp>
#endif
