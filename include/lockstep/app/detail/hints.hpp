// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/free_memory.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/parallel/device_facts.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Returns a note if this program starts a run on more or fewer GPUs than it sees. Empty if the numbers are equal. Also
/// empty for ranks of another launcher, which may show each rank only its own GPU.
[[nodiscard]] std::string note_on_gpus(Options const& options, launch::Environment const& place);

/// Returns a note if the quota of the control group allows fewer processors than the machine has; else empty.
/// @param quota of processor_quota()   @param allowed the processors that this process may run on
[[nodiscard]] std::string note_on_quota(std::optional<int> quota, int allowed);

/// Returns a note if several times more training threads than processors are to train; else empty.
/// @param ranks_here ranks of this host
[[nodiscard]] std::string note_on_shared_processors(Options const& options, int ranks_here);

/// Returns a note on the seconds between a rank's start and its first batch; empty for a fast start.
[[nodiscard]] std::string note_on_slow_start(double seconds);

/// Returns a note if output could not be written, for example to a full disk; empty if its reader has ended, as after
/// `| head`.
[[nodiscard]] std::string note_on_lost_output(std::FILE* out);

/// Returns an exception's message; with a remedy for memory that ran out, and for a path that the system does not show.
[[nodiscard]] std::string message_of(std::exception const& error);

/// Returns f(). Replaces a bad_alloc with an Error with `message_of`.
template <class Function>
decltype(auto) with_memory_message(Function&& f) {
  try {
    return f();
  } catch (std::bad_alloc const& error) {
    throw Error(message_of(error));
  }
}

/// Returns the supervisor's sentence about a failed rank, with a hint if the kernel may have killed it.
[[nodiscard]] std::string with_memory_hint(std::string const& report);

/// Returns a note if cuDNN was to compute attention and did not compute all of it; else empty.
[[nodiscard]] std::string note_on_attention(parallel::DeviceFacts const& gpu);

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/hints.ipp>
#endif
