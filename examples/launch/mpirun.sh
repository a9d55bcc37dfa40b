#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/launch/mpirun.sh N PROGRAM [flag…]: mpirun starts N ranks of a trainer, which MPI connects, on this host or
# on the hosts of a hostfile: MPIRUN='mpirun --hostfile hosts'. MPIRUN must belong to the MPI that the program was built
# with.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 N PROGRAM [flag…]" >&2; exit 2; }
# Ranks prove to each other with it that they belong to this job: see docs/how-to/launch.md, Secret.
export LOCKSTEP_SECRET=${LOCKSTEP_SECRET:-$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')}
read -ra mpirun <<<"${MPIRUN:-mpirun}"
# Open MPI passes on to other hosts only what it is told to; MPICH passes on all variables.
[[ $("${mpirun[@]}" --version 2>&1) != *'Open MPI'* ]] || mpirun+=(-x LOCKSTEP_SECRET)
exec "${mpirun[@]}" -n "$1" "${@:2}" --engine mpi
