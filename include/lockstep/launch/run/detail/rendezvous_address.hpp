// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/job_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns the first host of Slurm's compact list: "gpu003" of "gpu[003-004,010],login1".
[[nodiscard]] std::string first_slurm_host(std::string_view list);

/// Address of rank 0's store, for ranks on several hosts.
struct RendezvousAddress {
  std::string host;
  std::vector<std::uint16_t> ports;  ///< the store uses the first free one of these
  std::uint64_t run = 0;             ///< equal on all ranks of a run, different in any other run
};

/// Returns the address at which the ranks connect. torchrun's agent listens on MASTER_PORT itself, and srun sets no
/// port. Ranks then try a few ports derived from the run's name, below the system's ephemeral ports.
/// @throws ConfigError if rank 0's host is unknown
[[nodiscard]] RendezvousAddress rendezvous_address(Environment const& place, Options const& options,
                                                   Lookup variable = {});

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/rendezvous_address.ipp>
#endif
