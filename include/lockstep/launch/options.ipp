// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE OptionList describe(Options& options) {
  constexpr double longest_wait = 3600;
  constexpr auto heading = "Launch";
  return {"launch",
          {
              {.name = "max_restarts",
               .variable = options.max_restarts,
               .range = {0, 1000},
               .flag = {.names = "--max-restarts",
                        .heading = heading,
                        .help = "Restarts of all ranks after a failure, with --nproc",
                        .compared = Compared::no}},
              {.name = "master_address",
               .variable = options.master_address,
               .flag = {.names = "--master-addr",
                        .heading = heading,
                        .help = "Host of rank 0, for ranks on several hosts; default: MASTER_ADDR, or from Slurm",
                        .compared = Compared::no,
                        .synonyms = "master-address"}},
              {.name = "master_port",
               .variable = options.master_port,
               .range = {0, 65535},
               .flag = {.names = "--master-port",
                        .heading = heading,
                        .help = "Free TCP port of that host; 0: MASTER_PORT, or derived from the job's name",
                        .compared = Compared::no}},
              {.name = "join_seconds",
               .variable = options.join_seconds,
               .range = {1, longest_wait},
               .flag = {.names = "--join-timeout",
                        .heading = heading,
                        .help = "Seconds until all ranks must have joined, if another program launches them",
                        .compared = Compared::no}},
              {.name = "require_secret",
               .variable = options.require_secret,
               .flag = {.names = "--require-secret",
                        .heading = heading,
                        .help = "Refuse ranks on several hosts that have no LOCKSTEP_SECRET_FILE or LOCKSTEP_SECRET",
                        .compared = Compared::no}},
              {.name = "limits.stall_seconds",
               .variable = options.limits.stall_seconds,
               .range = {0},
               .flag = {.names = "--stall-timeout",
                        .heading = heading,
                        .help = "Seconds that a rank waits for another rank that is alive; 0: no limit",
                        .compared = Compared::no}},
              {.name = "limits.silence_seconds",
               .variable = options.limits.silence_seconds,
               .range = {2, longest_wait},
               .flag = {.names = "--host-timeout",
                        .heading = heading,
                        .help = "Seconds without contact after which another host's ranks count as lost",
                        .compared = Compared::no}},
          }};
}

}}}  // namespace lockstep::launch
