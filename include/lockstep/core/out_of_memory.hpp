// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the message of memory that the system refused: who needs how much of it, how much is free, and a remedy.
/// @param who the file and the part of it that needs the memory
/// @param bytes at least as many are needed
[[nodiscard]] std::string out_of_memory_message(std::string const& who, std::uint64_t bytes);

/// Memory for the content of a file that the system refused. It is not the fault of a sample, which a loader may skip.
class OutOfMemoryError : public DataError {
 public:
  using DataError::DataError;
};

/// Returns f(), which takes memory for the content of a file.
/// @throws OutOfMemoryError with `out_of_memory_message` if the system refuses the memory
template <class Function>
decltype(auto) with_memory_for(std::string const& who, std::uint64_t bytes, Function&& f) {
  try {
    return f();
  } catch (std::bad_alloc const&) {
    throw OutOfMemoryError(out_of_memory_message(who, bytes));
  } catch (std::length_error const&) {  // beyond the largest size of a container
    throw OutOfMemoryError(out_of_memory_message(who, bytes));
  }
}

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/out_of_memory.ipp>
#endif
