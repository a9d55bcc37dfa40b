#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/launch/mpirun.sh N PROGRAM [flag…]: mpirun starts N ranks of a trainer, which MPI connects, on this host or
# on the hosts of a hostfile: MPIRUN='mpirun --hostfile hosts'. MPIRUN must belong to the MPI that the program was built
# with.
set -euo pipefail
(($# >= 2)) || { echo "usage: $0 N PROGRAM [flag…]" >&2; exit 2; }
read -ra mpirun <<<"${MPIRUN:-mpirun}"
exec "${mpirun[@]}" -n "$1" "${@:2}" --engine mpi
